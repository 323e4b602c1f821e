// SPDX-License-Identifier: Apache-2.0
//
// CVA6's AXI, 64 bits wide, to the machine's data bus of words: one burst at a time, writes first.
// Instructions come over it too.

module soc_cva6_bus
  import soc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,

  input logic [ 6:0] gap_percent_i,
  input logic [31:0] seed_i,

  input  ariane_axi::req_t         axi_req_i,
  output ariane_axi::resp_t        axi_resp_o,
  input  logic                     data_stall_i,  // no read but of instructions may begin
  output logic              [31:0] fetched_o,     // address of the last ones

  // Devices and registers of the chip: as from soc_data_bus
  output logic    device_valid_o,
  output access_t device_access_o,
  input  answer_t device_answer_i,
  output logic    chip_valid_o,
  output access_t chip_access_o,
  input  logic    chip_done_i,
  input  answer_t chip_answer_i
);

  localparam logic [2:0] SizeBeat = 3'd3;  // 8 bytes
  localparam ariane_axi::id_t IdFetch = '0;

  typedef enum logic [1:0] {
    Idle,
    Ask,    // for a word
    Wait,   // for its answer
    Answer  // to the core, for a beat
  } state_e;

  state_e state_q, state_d;
  logic we_q, we_d;
  logic [31:0] beat_q, beat_d;  // its address
  ariane_axi::id_t id_q, id_d;
  logic [7:0] beats_q, beats_d;  // behind this one
  logic [1:0] words_q, words_d;  // of the beat, that are left
  logic [7:0] strb_q;
  logic [1:0][31:0] data_q;
  logic err_q;
  logic take_write, take_read;
  logic second;  // word of the beat
  logic gnt, rvalid, err;
  logic [31:0] rdata, address;

  assign second = !words_q[0];
  assign address = {beat_q[31:3], second, 2'b00};
  assign take_write = state_q == Idle && axi_req_i.aw_valid && axi_req_i.w_valid;
  assign take_read = state_q == Idle && !take_write && axi_req_i.ar_valid &&
                     !(data_stall_i && axi_req_i.ar.id != IdFetch);

  always_comb begin
    axi_resp_o = '0;
    axi_resp_o.aw_ready = take_write;
    axi_resp_o.w_ready = take_write;
    axi_resp_o.ar_ready = take_read;
    axi_resp_o.b_valid = state_q == Answer && we_q;
    axi_resp_o.b.id = id_q;
    axi_resp_o.b.resp = {err_q, 1'b0};
    axi_resp_o.r_valid = state_q == Answer && !we_q;
    axi_resp_o.r.id = id_q;
    axi_resp_o.r.data = data_q;
    axi_resp_o.r.resp = {err_q, 1'b0};
    axi_resp_o.r.last = beats_q == '0;
  end

  always_comb begin
    state_d = state_q;
    we_d = we_q;
    beat_d = beat_q;
    id_d = id_q;
    beats_d = beats_q;
    words_d = words_q;
    unique case (state_q)
      Idle: begin
        beats_d = '0;
        if (take_write) begin
          we_d = 1'b1;
          beat_d = axi_req_i.aw.addr[31:0];
          id_d = axi_req_i.aw.id;
          words_d = {|axi_req_i.w.strb[7:4], |axi_req_i.w.strb[3:0]};
          state_d = words_d == '0 ? Answer : Ask;
        end else if (take_read) begin
          we_d = 1'b0;
          beat_d = axi_req_i.ar.addr[31:0];
          id_d = axi_req_i.ar.id;
          beats_d = axi_req_i.ar.len;
          words_d = axi_req_i.ar.size == SizeBeat ? 2'b11 : 2'b01 << axi_req_i.ar.addr[2];
          state_d = Ask;
        end
      end
      Ask: if (gnt) state_d = Wait;
      Wait: begin
        if (rvalid) begin
          words_d[second] = 1'b0;
          state_d = words_d == '0 ? Answer : Ask;
        end
      end
      Answer: begin
        if (we_q ? axi_req_i.b_ready : axi_req_i.r_ready) begin
          state_d = beats_q == '0 ? Idle : Ask;
          beats_d = beats_q - 8'd1;
          words_d = 2'b11;
          beat_d  = beat_q + 32'd8;
        end
      end
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      state_q <= Idle;
      we_q <= 1'b0;
      beat_q <= '0;
      id_q <= '0;
      beats_q <= '0;
      words_q <= '0;
      strb_q <= '0;
      data_q <= '0;
      err_q <= 1'b0;
      fetched_o <= '0;
    end else begin
      state_q <= state_d;
      we_q <= we_d;
      beat_q <= beat_d;
      id_q <= id_d;
      beats_q <= beats_d;
      words_q <= words_d;
      if (take_write) {strb_q, data_q} <= {axi_req_i.w.strb, axi_req_i.w.data};
      if (take_read && axi_req_i.ar.id == IdFetch) fetched_o <= axi_req_i.ar.addr[31:0];
      if (state_q == Wait && rvalid && !we_q) data_q[second] <= rdata;
      if (state_q == Idle) err_q <= 1'b0;
      else if (state_q == Wait && rvalid && err) err_q <= 1'b1;
    end
  end

  // One beat a write: the cache writes through.
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_write |-> axi_req_i.w.last);

  soc_data_bus u_data_bus (
    .clk_i,
    .rst_ni,
    .gap_percent_i,
    .seed_i,
    .stall_i (1'b0),
    .req_i   (state_q == Ask),
    .gnt_o   (gnt),
    .addr_i  (address),
    .we_i    (we_q),
    .be_i    (strb_q[4*second+:4]),
    .wdata_i (data_q[second]),
    .rvalid_o(rvalid),
    .rdata_o (rdata),
    .err_o   (err),
    .device_valid_o,
    .device_access_o,
    .device_answer_i,
    .chip_valid_o,
    .chip_access_o,
    .chip_done_i,
    .chip_answer_i
  );

endmodule
