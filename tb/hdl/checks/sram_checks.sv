// SPDX-License-Identifier: Apache-2.0
//
// Checks the words that are read from the SRAM. Requests at its ports are checked where they are made.

`STREAM(npu_sram_reader, u_check, data_valid_o, data_ready_i, data_o)
