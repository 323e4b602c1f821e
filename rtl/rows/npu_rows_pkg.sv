// SPDX-License-Identifier: Apache-2.0
//
// What the row engines (softmax, the norms and ROPE) share: the work unit of eight columns, and the tags
// that travel beside every unit through an engine's pipeline.

package npu_rows_pkg;

  // Columns handled per cycle: one word of 16-bit elements, an "octet".
  localparam int unsigned RowLanes = 8;

  typedef logic [RowLanes-1:0][15:0] octet_t;

  // SOFTMAX reads a row twice (maximum, then exponentials), or three times for probabilities.
  typedef enum logic [1:0] {
    SmxPassMax,
    SmxPassSum,
    SmxPassOut
  } smx_pass_e;

  typedef struct packed {
    smx_pass_e pass;
    logic      first;  // first octet of this pass over the row
    logic      last;
  } smx_step_t;

  typedef struct packed {
    smx_step_t           step;
    logic                upper;    // int8 scores: the octet is the upper half of its word
    logic [RowLanes-1:0] visible;  // lanes of visible columns
  } smx_tag_t;

  // An octet of scores, and of their numerators
  typedef struct packed {
    logic                valid;    // an octet, taken whenever the stages move
    smx_step_t           step;     // its pass and place in the row, with valid
    logic [RowLanes-1:0] visible;  // lanes of visible columns, with valid
    logic [15:0]         max;      // int16, so far; in later passes of the whole row; with valid
    octet_t              score;    // int16; -32,768 where not visible; with valid
  } smx_scores_t;

  typedef struct packed {
    logic      valid;  // an octet, taken whenever the stages move
    smx_step_t step;   // its pass and place in the row, with valid
    octet_t    numer;  // 16 bits, or 8 as the operation says; with valid
  } smx_numers_t;

  // Probability of a numerator times the reciprocal of its sum: prod / 2^(8 + msb) rounded half up,
  // at most 255. No numerator is larger than the sum, which keeps it below 2^9.
  function automatic logic [7:0] probability(logic [31:0] prod, logic [4:0] msb);
    logic [9:0] twice;
    twice = 10'(prod[31:7] >> msb);
    if (twice[9] || twice[8:1] == 8'd255) return 8'd255;
    return twice[8:1] + 8'(twice[0]);
  endfunction

  // The norms read their parameters, and each row for its sums and again to normalise it.
  typedef enum logic [1:0] {
    NormParam,
    NormPassSum,
    NormPassOut
  } norm_kind_e;

  typedef struct packed {
    norm_kind_e kind;
    logic       first;  // of the row
    logic       last;
    logic [3:0] lanes;  // columns of the row in this octet
    logic [9:0] octet;  // index inside the row, which selects the parameters
  } norm_tag_t;

  // ROPE takes a head in chunks: a word of lanes to rotate, with the lanes that they are paired with,
  // then a word of four cos/sin pairs for every four pairs of lanes.
  typedef struct packed {
    logic       load_a;     // the word holds the first lanes of pairs
    logic       load_b;     // the word holds second lanes (halves)
    logic [1:0] group;      // cos/sin word: which four pairs of the chunk
    logic [2:0] pairs;      // valid ones of the four; zero for words of lanes
    logic       last;       // last group of the chunk
    logic       head_last;  // last chunk of the head
    logic       row_last;   // last head of the row
  } rope_tag_t;

  // What stays the same during an instruction. In halves a head has H = N / 2 first lanes.
  typedef struct packed {
    logic                pairs;       // neighbours; else halves
    npu_pkg::dim_t       last_chunk;  // halves: index of the word that holds the last first lane
    logic [4:0]          tail;        // halves: first lanes in it, 1 to 16
    npu_pkg::sram_addr_t words;       // of a head
  } rope_form_t;

  // ROPE works on the multipliers of the norms: some pairs of lanes, the first ones and then the
  // second ones, each times the cosine and times the sine of its pair.
  typedef struct packed {
    logic load;      // lanes become operands
    logic multiply;  // the products of the operands are taken
  } rope_work_t;

  typedef logic [1:0][15:0] rope_turn_t;  // cos and sin of a pair, int16

  // After multiply, until the next one: a lane times cos and sin, signed
  typedef logic [1:0][23:0] rope_product_t;

  // The engine of norms and ROPE; one of the two counts.
  typedef struct packed {
    norm_tag_t norm;
    rope_tag_t rope;
  } row_tag_t;

  // recip / 2^(6 + j), by which d = N * x - S1 is multiplied
  typedef struct packed {
    logic [15:0] recip;
    logic [5:0]  half;   // j
  } norm_scale_t;

  // Columns of the summing pass, to the statistics
  typedef struct packed {
    logic               valid;  // at most one per cycle; never refused
    logic               first;  // first of their row, with valid
    logic               last;   // last of their row, with valid
    logic signed [18:0] sum;    // sum of the columns, exact, with valid
  } norm_part_t;

  // What the first pass over a row leaves for the second: d * recip = factor * x - offset
  typedef struct packed {
    logic               valid;   // of the oldest row, known; stays until it is taken, all stable
    logic [28:0]        factor;  // N * recip, with valid
    logic signed [44:0] offset;  // S1 * recip, zero for RMSNORM; with valid
    logic [5:0]         half;    // j, with valid
  } norm_result_t;

  // Normalisation parameters of one column, as they lie in the share.
  typedef struct packed {
    logic signed [7:0] bias;
    logic [1:0]        reserved;
    logic [5:0]        shift;
    logic [15:0]       gain;
  } norm_record_t;

  // d * recip / 2^(2 + j), d * recip = scaled - offset, rounded half up, saturated to 20 bits. As
  // d^2 <= N * V, and V < 2^(2j + 2), the quotient of a column of the row is below 2^22: only 24 bits
  // of halves are looked at.
  function automatic logic signed [19:0] norm_quotient(
      logic signed [46:0] scaled, logic signed [44:0] offset, logic [5:0] half);
    logic signed [45:0] y;
    y = 46'((scaled - 47'(offset)) >>> 1);
    for (int unsigned step = 32; step != 0; step >>= 1) begin
      if ((32'(half) & step) != 0) y >>>= step;
      if (step < 32) y = (y <<< (23 - step)) >>> (23 - step);
    end
    if (y[23:20] != {4{y[23]}}) return {y[23], {19{!y[23]}}};
    if (y[20:1] == 20'h7ffff) return 20'h7ffff;
    return y[20:1] + 20'(y[0]);
  endfunction

  // Last step of the norms, in two parts: product / 2^shift rounded half up, plus the bias,
  // saturated to 16 bits or to 8. The first part shifts by a multiple of 16 and leaves halves.
  typedef logic signed [37:0] norm_halves_t;

  function automatic norm_halves_t norm_coarse(logic signed [36:0] product, logic [5:0] shift);
    return $signed({product, 1'b0}) >>> {shift[5:4], 4'd0};
  endfunction

  // The second part shifts by the rest. As in `round_saturate` the longest step is taken first, and
  // what no shorter one brings down must be copies of the sign: a quotient of more than a bit above
  // the result saturates whatever the bias is. Halves and bias are added in one sum.
  function automatic logic signed [15:0] norm_output(norm_halves_t halves, logic [3:0] shift,
                                                     logic signed [7:0] bias, logic is_16);
    logic negative, near, fits;
    norm_halves_t y, above;
    logic signed [18:0] sum;
    y    = halves;
    near = 1'b1;
    for (int unsigned step = 16; step != 0; step >>= 1) begin
      if ((32'(shift) & step) != 0) y >>>= step;
      above = y >>> (16 + step);
      near &= above == {38{halves[37]}};
      y = (y <<< (21 - step)) >>> (21 - step);
    end
    near &= is_16 || y[17:9] == {9{halves[37]}};
    sum      = 19'($signed(y[17:0])) + 19'($signed({bias, 1'b1}));
    fits     = is_16 ? sum[18:16] == {3{sum[18]}} : sum[10:8] == {3{sum[10]}};
    negative = near ? (is_16 ? sum[18] : sum[10]) : halves[37];
    if (near && fits) return sum[16:1];
    return {negative, {8{negative ^ is_16}}, {7{!negative}}};
  endfunction

endpackage
