// SPDX-License-Identifier: Apache-2.0
//
// A window into the module that it is bound to: what the bind statement connects can be read from
// outside as `u_probe.trace_i`.

module trace_probe #(
  parameter type TraceT = logic
) (
  input TraceT trace_i
);

endmodule
