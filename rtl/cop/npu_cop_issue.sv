// SPDX-License-Identifier: Apache-2.0
//
// The port's handshakes: a short queue of the instructions that are not yet done, and the result
// that waits for the host. The queue holds refused instructions as well, because a commit that names
// one of them speaks of its neighbours too; they leave it with their commit. What the host commits is
// a prefix of the queue and what it kills a suffix, so two rows of bits say it all, ones from the
// oldest entry on; npu_cop_decide finds them. Behind an instruction that uses memory nothing is issued
// until it has ended: it may fail, and the next one is refused then.
//
// The end of an instruction is known late in a cycle. It moves names and the oldest instruction, which
// has a register of its own; what the others are to do stays in their places.

module npu_cop_issue
  import npu_cop_pkg::*;
  import npu_cop_isa_pkg::*;
#(
  parameter int unsigned NumRs = 3,  // X_NUM_RS: operands that the host delivers, 2 or 3
  parameter int unsigned IdWidth = 4,  // X_ID_WIDTH: bits of an identifier, 3 to 32
  parameter int unsigned HartIdWidth = 1,  // X_HARTID_WIDTH: bits of a hart's number, 1 to 32
  parameter bit Split = 1'b0,  // X_ISSUE_REGISTER_SPLIT: operands come behind the issue
  parameter int unsigned Depth = 4  // instructions in the queue, at least 2
) (
  input logic clk_i,  // clock
  input logic rst_ni, // reset, active low

  // Port
  input x_req_t x_req_i,  // keeps the rules of CV-X-IF
  input x_commit_t x_commit_i,  // likewise; may depend on the answer to the issue
  output x_rsp_t x_rsp_o,  // issue and operands are answered in the same cycle
  output x_result_t x_result_o,  // in the order of issue

  input logic refuse_i,  // a level: accept no instruction

  // Execution
  output cop_op_t op_o,  // the oldest instruction; valid may come with the commit
  input cop_end_t end_i,  // of op_o, whether it is valid or not
  output logic ended_o,  // pulse: it ends
  output logic room_o,  // a level: the result register takes a result; depends on result_ready

  output logic awake_o,  // a level: an instruction that was accepted is inside, or a result
  output logic busy_o,   // likewise a cycle later, without those that were killed meanwhile
  output logic taken_o   // pulse: the host takes a result
);

  typedef logic [IdWidth-1:0] id_t;
  typedef logic [HartIdWidth-1:0] hartid_t;

  typedef struct packed {
    id_t  id;
    logic accepted;
    logic on_memory;  // it is accepted and uses memory
  } name_t;

  typedef struct packed {
    hartid_t          hartid;
    logic [31:0]      instr;
    cop_decoded_t     decoded;
    cop_unit_e        cop_unit;
    logic             waits;     // its operands have not come
    logic [2:0][31:0] rs;
  } work_t;

  localparam int unsigned Places = Depth - 1;
  localparam int unsigned PlaceW = (Places > 1) ? $clog2(Places) : 1;

  name_t names_q[Depth], incoming_name;  // oldest first
  work_t oldest_q, incoming;  // of the oldest one, of the one that is offered
  work_t places_q[Places];  // of the others, in a ring
  logic [PlaceW-1:0] second_q;  // place of the second oldest
  logic [Depth-1:0] there_q, committed_q;  // entries in use, and those that are committed
  logic accept;
  x_result_t result_q;
  cop_decoded_t decoded;

  // ---------------------------------------------------------------------------------------------
  // Issue
  // ---------------------------------------------------------------------------------------------
  logic uses_memory, complete, kills_late;
  logic [2:0] needed;
  x_issue_rsp_t answer;

  npu_cop_decode #(
    .NumRs(NumRs)
  ) u_decode (
    .instr_i  (x_req_i.issue.instr),
    .refuse_i,
    .decoded_o(decoded),
    .accept_o (accept)
  );

  always_comb begin
    uses_memory = 1'b0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (there_q[i] && names_q[i].on_memory) uses_memory = 1'b1;
    end
  end

  // Operands that come with the issue are waited for, those alone that the instruction needs.
  assign needed = accept ? decoded.register_read : '0;
  assign complete = needed == '0 ||
      (x_req_i.operands.valid && x_req_i.operands.id == x_req_i.issue.id &&
       (needed & ~x_req_i.operands.rs_valid) == '0);

  assign answer = '{
          ready: !there_q[Depth-1] && !uses_memory && !kills_late && (Split || complete),
          accept: accept,
          writeback: accept && decoded.writeback,
          register_read: needed,
          is_float: accept ? decoded.is_float : '0
      };

  always_comb begin
    incoming_name = '{
        id: id_t'(x_req_i.issue.id),
        accepted: accept,
        on_memory: accept && decoded.element_bytes != '0
    };
    incoming = '{
        hartid: hartid_t'(x_req_i.issue.hartid),
        instr: x_req_i.issue.instr,
        decoded: decoded,
        cop_unit: unit_of(decoded.op),
        waits: Split && accept,  // also for none: CV-X-IF has no result before them
        rs: '0
    };
    for (int unsigned r = 0; r < 3; r++) begin
      if (!Split && needed[r]) incoming.rs[r] = x_req_i.operands.rs[r];
    end
  end

  // ---------------------------------------------------------------------------------------------
  // The queue, with operands that come behind the issue, in any order
  // ---------------------------------------------------------------------------------------------
  name_t next_names[Depth + 1];  // with that of this cycle
  work_t oldest, places[Places];  // with the operands of this cycle
  logic pop;

  // Place of an entry, the oldest one being 0; not of that one
  function automatic logic [PlaceW-1:0] place(int unsigned age);
    int unsigned index;
    index = 32'(second_q) + age - 1;
    return PlaceW'((index < Places) ? index : index - Places);
  endfunction

  // What an entry has to do, with operands that are its own
  function automatic work_t delivered(work_t work, x_sources_t rs);
    work_t found;
    found = work;
    found.waits = 1'b0;
    for (int unsigned r = 0; r < 3; r++) begin
      if (work.waits && work.decoded.register_read[r]) found.rs[r] = rs[r];
    end
    return found;
  endfunction

  always_comb begin
    oldest = oldest_q;
    places = places_q;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (Split && there_q[i] && x_req_i.operands.valid &&
          names_q[i].id == id_t'(x_req_i.operands.id)) begin
        if (i == 0) oldest = delivered(oldest_q, x_req_i.operands.rs);
        else places[place(i)] = delivered(places_q[place(i)], x_req_i.operands.rs);
      end
    end
    for (int unsigned i = 0; i <= Depth; i++) begin
      next_names[i] = (i < Depth && there_q[i%Depth]) ? names_q[i%Depth] : incoming_name;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      for (int unsigned i = 0; i < Depth; i++) names_q[i] <= '0;
      second_q <= '0;
    end else begin
      for (int unsigned i = 0; i < Depth; i++) begin
        names_q[i] <= pop ? next_names[i+1] : next_names[i];
      end
      if (pop && there_q[1]) second_q <= place(2);
    end
  end

  // An offer goes where it is once it is issued.
  always_ff @(posedge clk_i) begin
    oldest_q <= oldest;
    if (!there_q[0] || pop) oldest_q <= there_q[1] ? places[second_q] : incoming;
    for (int unsigned i = 0; i < Places; i++) places_q[i] <= places[i];
    for (int unsigned i = 1; i < Depth; i++) begin
      if (x_req_i.issue.valid && there_q[i-1] && !there_q[i]) places_q[place(i)] <= incoming;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Commit and kill
  // ---------------------------------------------------------------------------------------------
  logic leads;
  logic [Depth-1:0] under_way, there, committed;
  id_t [Depth-1:0] ids;

  always_comb begin
    for (int unsigned i = 0; i < Depth; i++) begin
      ids[i]       = names_q[i].id;
      under_way[i] = there_q[i] && names_q[i].accepted;
    end
  end

  npu_cop_decide #(
    .IdWidth(IdWidth),
    .Depth  (Depth)
  ) u_decide (
    .clk_i,
    .rst_ni,
    .commit_valid_i(x_commit_i.valid),
    .commit_kill_i (x_commit_i.kill),
    .commit_id_i   (id_t'(x_commit_i.id)),
    .offer_i       (x_req_i.issue.valid),
    .offer_id_i    (incoming_name.id),
    .issue_i       (x_req_i.issue.valid && answer.ready),
    .there_i       (there_q),
    .under_way_i   (under_way),
    .committed_i   (committed_q),
    .ids_i         (ids),
    .pop_i         (pop),
    .result_i      (result_q.valid),
    .result_id_i   (id_t'(result_q.id)),
    .leads_o       (leads),
    .kills_late_o  (kills_late),
    .there_o       (there),
    .committed_o   (committed),
    .busy_o
  );

  // ---------------------------------------------------------------------------------------------
  // The oldest instruction. Its operands must have been there a cycle ago; a commit that names it may
  // be new.
  // ---------------------------------------------------------------------------------------------
  logic ready_to_go, may_go;

  assign ready_to_go = there_q[0] && (committed_q[0] || leads);
  assign op_o.valid = ready_to_go && names_q[0].accepted && !oldest_q.waits;
  assign op_o.instr = oldest_q.instr;
  assign op_o.decoded = oldest_q.decoded;
  assign op_o.cop_unit = oldest_q.cop_unit;
  assign op_o.rs = oldest_q.rs;
  assign room_o = !result_q.valid || x_req_i.result_ready;
  // Whether it could end is known before whether the host lets it.
  assign may_go = !names_q[0].accepted || (!oldest_q.waits && room_o && end_i.ready);
  assign pop = ready_to_go && may_go;
  assign ended_o = pop && names_q[0].accepted;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      there_q     <= '0;
      committed_q <= '0;
    end else begin
      there_q     <= there;
      committed_q <= committed;
    end
  end

  // ---------------------------------------------------------------------------------------------
  // Result
  // ---------------------------------------------------------------------------------------------
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      result_q <= '0;
    end else if (room_o) begin
      // Data may be there before the end.
      result_q.valid <= ended_o;
      result_q.id    <= x_id_t'(names_q[0].id);
      result_q.hartid <= x_hartid_t'(oldest_q.hartid);
      result_q.rd    <= oldest_q.instr[11:7];
      result_q.we    <= oldest_q.decoded.writeback;
      result_q.data  <= oldest_q.decoded.writeback ? end_i.data : '0;
    end
  end

  assign x_rsp_o = '{issue: answer, operands_ready: Split || answer.ready};
  assign x_result_o = result_q;
  assign taken_o = result_q.valid && x_req_i.result_ready;

  assign awake_o = result_q.valid || under_way != '0;

`ifndef SYNTHESIS
  x_id_t wide;
  assign wide =
      (x_req_i.issue.id | x_req_i.operands.id | x_commit_i.id) >> (IdWidth - 1) >> 1 |
      (x_req_i.issue.hartid | x_req_i.operands.hartid | x_commit_i.hartid) >>
      (HartIdWidth - 1) >> 1;
  IdsFit_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) wide == '0)
  else $error("npu_cop_issue: an identifier is wider than IdWidth or HartIdWidth");
  NoHoles_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   (there_q & (there_q + 1'b1)) == '0 && (committed_q & (committed_q + 1'b1)) == '0)
  else $error("npu_cop_issue: entries or committed ones are not the oldest ones");
  CommittedAreThere_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni) (committed_q & ~there_q) == '0)
  else $error("npu_cop_issue: more instructions are committed than there are");
  ResultStable_A :
  assert property (@(posedge clk_i) disable iff (!rst_ni)
                   result_q.valid && !x_req_i.result_ready |=> $stable(
      result_q
  ))
  else $error("npu_cop_issue: a result changed before it was taken");
`endif

endmodule
