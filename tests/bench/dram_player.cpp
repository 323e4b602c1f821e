// SPDX-License-Identifier: Apache-2.0
//
// Plays a list of bursts to the DRAM of the bench and prints what it does: a line for each command
// (clock, number of the command, bank, row or column) and for each beat that is read (its cycle).
// Arguments: ddr4 or lpddr4, seed. Input: a line for each burst, its cycle, r or w, address, beats; a
// write waits until it has room.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tb/hdl/dram.h"

int main(int, char** arguments) {
  dram::Dram memory;
  memory.reset(std::strcmp(arguments[1], "ddr4") == 0 ? dram::kDdr4 : dram::kLpddr4,
               static_cast<uint32_t>(std::atoi(arguments[2])));
  memory.log = [](uint64_t clock, dram::Command command, unsigned bank, uint32_t row) {
    std::printf("command %" PRIu64 " %u %u %u\n", clock, static_cast<unsigned>(command), bank, row);
  };
  uint64_t cycle = 0, at = 0;
  unsigned left = 0;
  auto pass = [&] {
    if (memory.readable(cycle)) {
      memory.take();
      --left;
      std::printf("beat %" PRIu64 "\n", cycle);
    }
    ++cycle;
  };
  char kind;
  unsigned address, beats;
  while (std::scanf("%" SCNu64 " %c %u %u", &at, &kind, &address, &beats) == 4) {
    while (cycle < at || (kind == 'w' && !memory.room(cycle))) pass();
    if (kind == 'r') {
      memory.read(cycle, address, beats);
      left += beats;
    } else {
      memory.write(cycle, address, beats);
    }
  }
  for (const uint64_t end = cycle + 20000; left != 0 || cycle < end;) pass();
}
