// SPDX-License-Identifier: Apache-2.0
//
// Bench of the SRAM with its crossbars: every port plays requests of its own. Slots of reading ports
// come first, then those of writing ports; what is read goes to slots behind those.

module unit_sram;
  import npu_sram_pkg::*;

  localparam int unsigned NumRd = NumSramRd;
  localparam int unsigned NumWr = NumSramWr;
  localparam int unsigned Words = 1024;

  logic clk, rst_n, start;
  unit_pkg::program_t played;
  logic [NumRd+NumWr-1:0] ended;
  logic [31:0] answers[NumRd];  // words read so far
  logic answered;  // all have been read

  unit_control u_control (
    .clk_o    (clk),
    .rst_no   (rst_n),
    .world_o  (),
    .program_o(played),
    .start_o  (start),
    .end_i    (&ended && answered)
  );

  sram_rd_req_t rd_req[NumRd];
  sram_rd_rsp_t rd_rsp[NumRd];
  sram_wr_req_t wr_req[NumWr];
  logic wr_ready[NumWr];

  npu_sram #(
    .Words(Words)
  ) u_sram (
    .clk_i     (clk),
    .rst_ni    (rst_n),
    .rd_req_i  (rd_req),
    .rd_rsp_o  (rd_rsp),
    .wr_req_i  (wr_req),
    .wr_ready_o(wr_ready)
  );

  for (genvar p = 0; p < int'(NumRd + NumWr); p++) begin : gen_port
    localparam int unsigned Writer = (p < int'(NumRd)) ? 0 : p - NumRd;
    logic valid, ready;
    logic [111:0] payload;

    unit_requests #(
      .Slot(p)
    ) u_requests (
      .clk_i    (clk),
      .rst_ni   (rst_n),
      .start_i  (start),
      .count_i  (played.words),
      .end_o    (ended[p]),
      .valid_o  (valid),
      .ready_i  (ready),
      .payload_o(payload)
    );

    if (p < int'(NumRd)) begin : gen_read
      assign rd_req[p] = '{valid: valid, addr: payload[15:0]};
      assign ready     = rd_rsp[p].ready;
    end else begin : gen_write
      // The upper bits are of no interest: an address of 16 bits, data of 96
      always_comb begin
        wr_req[Writer]       = '0;
        wr_req[Writer].valid = valid;
        wr_req[Writer].addr  = payload[15:0];
        wr_req[Writer].data  = {32'd0, payload[111:16]};
      end
      assign ready = wr_ready[Writer];
    end
  end

  // Answers, in their order
  always_comb begin
    answered = 1'b1;
    for (int unsigned r = 0; r < NumRd; r++) answered &= answers[r] == played.words;
  end

  always @(posedge clk) begin
    for (int unsigned r = 0; r < NumRd; r++) begin
      if (!rst_n) begin
        answers[r] <= '0;
      end else if (rd_rsp[r].valid) begin
        tb_pkg::tb_memory_now(
            unit_pkg::ObservedAt + (NumRd + NumWr + r) * unit_pkg::SlotBytes + 16 * answers[r],
            rd_rsp[r].data);
        answers[r] <= answers[r] + 32'd1;
      end
    end
  end

endmodule
