// SPDX-License-Identifier: Apache-2.0
//
// Weight-stationary systolic array of ArrayDim x ArrayDim processing elements. A row of activations
// enters every cycle; lane k is delayed by k cycles to meet the partial sums on their way down, and
// the finished row of sums leaves ArrayDim cycles later. Loaded weights take the same way down, one
// row per cycle, behind the activations that still need the old ones: for the outside, loading and
// computing happen in the order in which they are presented, with no waiting for the wavefront.
// Tiles of weights are at least as large as the array; a row of activations selects the part of its
// tile that it meets. The clock of a row runs in cycles in which an activation or weights reach it.
//
// Depthwise: rows 1 to 4 take what entered last, a channel for each column, all at once, instead of
// their lanes. Sums move from one of these rows to the next with each new row of channels, so that
// each adds the channels that entered one later than in the row above: neighbours of an image. An
// array that is smaller than a tile has none of it.

module npu_systolic_array #(
  parameter int unsigned ArrayDim = 16,  // rows and columns of the array: 4, 8, 16 or 32
  parameter int unsigned Edge = 16,  // tile edge in elements, 16 or 32
  localparam int unsigned StripsPerLine = npu_pkg::LineBytes / Edge,  // strips in a line: 4 or 2
  localparam int unsigned LineIdxW = $clog2(Edge / StripsPerLine),  // bits of a line's index
  // Each row takes a part of every line and passes on what is left, else it passes on the line.
  localparam bit Shares = Edge == 4 * ArrayDim,
  localparam int unsigned RowBits = Shares ? 8 * Edge : npu_pkg::LineBits  // of a line, for a row
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  input logic                            act_valid_i,           // a row enters; no refusal
  input npu_gemm_pkg::weight_sel_t       act_sel_i,             // weight set and part of the tile
  input logic signed               [8:0] act_i      [ArrayDim], // int8, uint8, or a byte of 16 bits

  // Depthwise: channels of the row that enters, or of one that only the sums of rows before need
  input logic              channels_valid_i,           // channels enter; no refusal
  input logic signed [8:0] channels_i      [ArrayDim], // int8 or uint8

  output logic [ArrayDim-2:0] held_o,  // the sums behind row k stay there in this cycle

  // Sums of the row that entered ArrayDim cycles before, and as many more as they were held
  output logic signed [31:0] psum_o[ArrayDim],  // int32; stays until the next row leaves

  // Weights, for rows that enter in later cycles
  input npu_gemm_pkg::weights_t weights_i  // strips to load
);

  localparam bit Depthwise = Edge == ArrayDim;
  localparam int unsigned Taps = 32'(npu_isa_pkg::DepthwiseTaps);

  typedef struct packed {
    logic [StripsPerLine-1:0] strip_valid;
    logic                     set;
    logic                     by_column;
    logic [LineIdxW-1:0]      line;
  } wt_ctrl_t;

  wt_ctrl_t wt_ctrl_in;
  assign wt_ctrl_in = '{
          strip_valid: weights_i.strip_valid[StripsPerLine-1:0],
          set: weights_i.set,
          by_column: weights_i.by_column,
          line: weights_i.index[LineIdxW-1:0]
      };

  // Stage k is what row k sees; stage 0 is the input itself.
  logic [ArrayDim-2:0] valid_q, depthwise_q;
  npu_gemm_pkg::weight_sel_t sel_q[ArrayDim-1];
  logic signed [8:0] skew_q[ArrayDim][ArrayDim];  // [lane][delay - 1], used where delay <= lane
  wt_ctrl_t wt_ctrl_q[ArrayDim-1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q     <= '0;
      depthwise_q <= '0;
      for (int unsigned k = 0; k < ArrayDim - 1; k++) begin
        sel_q[k]     <= '0;
        wt_ctrl_q[k] <= '0;
      end
    end else begin
      valid_q <= {valid_q[ArrayDim-3:0] & ~held_o[ArrayDim-3:0], act_valid_i} | held_o;
      sel_q[0] <= act_sel_i;
      depthwise_q[0] <= channels_valid_i;
      wt_ctrl_q[0] <= wt_ctrl_in;
      for (int unsigned k = 1; k < ArrayDim - 1; k++) begin
        if (!held_o[k]) {sel_q[k], depthwise_q[k]} <= {sel_q[k-1], depthwise_q[k-1]};
        wt_ctrl_q[k] <= wt_ctrl_q[k-1];
      end
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned lane = 1; lane < ArrayDim; lane++) begin
      if (act_valid_i) skew_q[lane][0] <= act_i[lane];
      for (int unsigned s = 1; s < lane; s++) begin
        if (valid_q[s-1]) skew_q[lane][s] <= skew_q[lane][s-1];
      end
    end
  end

  // What entered last; behind rows 1 to 3 sums wait for the next.
  logic signed [8:0] channels_q[ArrayDim];
  logic channels_new_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) channels_new_q <= 1'b0;
    else channels_new_q <= Depthwise && channels_valid_i;
    if (Depthwise && channels_valid_i) channels_q <= channels_i;
  end

  always_comb begin
    held_o = '0;
    for (int unsigned k = 1; k < ArrayDim - 1; k++) begin
      if (Depthwise && k < Taps) held_o[k] = valid_q[k] && depthwise_q[k] && !channels_new_q;
    end
  end

  npu_pkg::line_t wt_data_in;

  if (Shares) begin : gen_shares
    npu_pe_share u_share (
      .by_column_i(weights_i.by_column),
      .line_i     (weights_i.index[LineIdxW-1:0]),
      .data_i     (weights_i.data),
      .share_o    (wt_data_in)
    );
  end else begin : gen_lines
    assign wt_data_in = weights_i.data;
  end

  logic signed [31:0] psum[ArrayDim+1][ArrayDim];
  always_comb begin
    for (int unsigned n = 0; n < ArrayDim; n++) psum[0][n] = '0;
  end

  for (genvar k = 0; k < int'(ArrayDim); k++) begin : gen_row
    // What comes of a line, and what goes on to the row below
    localparam int unsigned Bits = Shares ? RowBits * (ArrayDim - k) : RowBits;
    localparam int unsigned Passed = Shares ? Bits - RowBits : Bits;
    logic waits, valid;  // sums are there for the row; it adds to them
    logic depthwise;  // these sums are of a depthwise operation
    npu_gemm_pkg::weight_sel_t sel;
    logic signed [8:0] act, act_column[ArrayDim];
    wt_ctrl_t wt_ctrl;
    logic [Bits-1:0] wt_data;

    if (k == 0) begin : gen_first
      assign waits = act_valid_i;
      assign valid = act_valid_i;
      assign depthwise = 1'b0;
      assign sel = act_sel_i;
      assign act = act_i[0];
      assign wt_data = wt_data_in;
      assign wt_ctrl = wt_ctrl_in;
    end else begin : gen_below
      assign waits     = valid_q[k-1];
      assign valid     = valid_q[k-1] && !held_o[k-1];
      assign depthwise = depthwise_q[k-1];
      assign sel       = sel_q[k-1];
      assign act       = skew_q[k][k-1];
      assign wt_data   = gen_row[k-1].gen_pass.wt_data_q;
      assign wt_ctrl   = wt_ctrl_q[k-1];
    end

    for (genvar n = 0; n < int'(ArrayDim); n++) begin : gen_column
      localparam bit Tap = Depthwise && k >= 1 && k <= int'(Taps);
      assign act_column[n] = (Tap && depthwise) ? channels_q[n] : act;
    end

    logic row_clk;
    npu_clock_gate u_gate (
      .clk_i,
      .enable_i(waits || |wt_ctrl.strip_valid),
      .clk_o   (row_clk)
    );

    if (k < int'(ArrayDim) - 1) begin : gen_pass
      logic [Passed-1:0] wt_data_q;  // on its way to the row below
      always_ff @(posedge row_clk) begin
        if (|wt_ctrl.strip_valid) wt_data_q <= wt_data[Bits-1-:Passed];
      end
    end

    npu_pe_row #(
      .ArrayDim(ArrayDim),
      .Edge    (Edge),
      .Index   (k)
    ) u_row (
      .clk_i           (row_clk),
      .act_valid_i     (valid),
      .act_sel_i       (sel),
      .act_i           (act_column),
      .psum_i          (psum[k]),
      .psum_o          (psum[k+1]),
      .wt_strip_valid_i(wt_ctrl.strip_valid),
      .wt_set_i        (wt_ctrl.set),
      .wt_by_column_i  (wt_ctrl.by_column),
      .wt_line_i       (wt_ctrl.line),
      .wt_data_i       (wt_data[RowBits-1:0])
    );
  end

  assign psum_o = psum[ArrayDim];

`ifndef SYNTHESIS
  for (genvar k = 0; k < int'(ArrayDim); k++) begin : gen_check
    // Products of -256 might need a bit more than the sums have.
    ActivationRange_A :
    assert property (@(posedge clk_i) disable iff (!rst_ni) act_valid_i |-> act_i[k] != -9'sd256)
    else $error("npu_systolic_array: lane %0d is no byte", k);
  end
`endif

endmodule
