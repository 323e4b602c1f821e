// SPDX-License-Identifier: Apache-2.0
//
// The main program of simulators that record waveforms: cocotb's own, whose waveform file holds only
// what happens from +wave_from=<ns> to +wave_to=<ns>, both included; without them everything. Nothing
// of this is in the design, so that a recorded run has the cycles of any other.

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "Vtop.h"

namespace {

uint64_t plusarg(const char* prefix, uint64_t otherwise) {
  const char* found = Verilated::threadContextp()->commandArgsPlusMatch(prefix);
  return *found != '\0' ? std::strtoull(found + 1 + std::strlen(prefix), nullptr, 10) : otherwise;
}

class WindowedFst : public VerilatedFstC {
 public:
  void dump(uint64_t time) {
    if (first_ <= time && time <= last_) VerilatedFstC::dump(time);
  }

 private:
  uint64_t first_ = plusarg("wave_from=", 0);
  uint64_t last_ = plusarg("wave_to=", UINT64_MAX);
};

}  // namespace

#define VerilatedFstC WindowedFst
#include "verilator.cpp"
