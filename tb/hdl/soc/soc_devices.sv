// SPDX-License-Identifier: Apache-2.0
//
// UART, exit register and time. What goes out is written to uart.txt in the run's folder, a line of
// cycle and byte each, so that whoever watches the file sees it as it comes; what comes in is the
// file uart_in.bin, which ends like a file.

module soc_devices
  import soc_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input logic [63:0] cycle_i, // since the reset

  input  logic    valid_i,
  input  access_t access_i,
  output answer_t answer_o,  // a cycle later

  output logic        exited_o,    // stays
  output logic [31:0] exit_code_o
);

  int uart_out, uart_in;

  initial begin
    string run_dir;
    if (!$value$plusargs("run_dir=%s", run_dir)) $fatal(1, "+run_dir=<folder> is missing");
    uart_out = $fopen({run_dir, "/uart.txt"}, "w");
    uart_in  = $fopen({run_dir, "/uart_in.bin"}, "rb");
  end

  // A behavioural model: files are read and written in program order.
  /* verilator lint_off BLKSEQ */
  function automatic logic [31:0] next_byte();
    return uart_in == 0 ? '1 : 32'($fgetc(uart_in));
  endfunction

  always @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      exited_o <= 1'b0;
      exit_code_o <= '0;
      answer_o <= '0;
    end else if (valid_i) begin
      answer_o <= '0;
      unique case (access_i.address[11:0])
        DeviceUart: begin
          if (access_i.we) begin
            $fwrite(uart_out, "%0d %0d\n", cycle_i, access_i.wdata[7:0]);
            $fflush(uart_out);
          end else begin
            answer_o.rdata <= next_byte();
          end
        end
        DeviceExit: begin
          if (access_i.we) begin
            exited_o <= 1'b1;
            exit_code_o <= access_i.wdata;
          end
        end
        DeviceMicroseconds: answer_o.rdata <= 32'(cycle_i / CyclesPerMicrosecond);
        DeviceCycles: answer_o.rdata <= cycle_i[31:0];
        default: answer_o.err <= 1'b1;
      endcase
    end
  end
  /* verilator lint_on BLKSEQ */

endmodule
