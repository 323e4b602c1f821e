// SPDX-License-Identifier: Apache-2.0
//
// Checks the streams of the sequencer; a redirect or a flush withdraws what was fetched and checked.
// Reads of npu_fetch are not checked, as a redirect lets their valid go; tickets and operations of
// npu_dispatch are pulses.

`STREAM(npu_fetch, u_check, fetched_o.valid, ready_i, {fetched_o.word, fetched_o.index},
        redirect_i.valid)
`STREAM(npu_check, u_check, entry_valid_o, entry_ready_i, entry_o, flush_i)
`STREAM(npu_ahead, u_check, entry_valid_o, entry_ready_i, {entry_o, extents_o}, flush_i)
