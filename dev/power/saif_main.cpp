// SPDX-License-Identifier: Apache-2.0
//
// The main program of simulators that count toggles: cocotb's own, whose SAIF file counts only what
// happens from +wave_from=<ns> to +wave_to=<ns>, both included; without them everything.

#include <verilated.h>
#include <verilated_saif_c.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "Vtop.h"

namespace {

uint64_t plusarg(const char* prefix, uint64_t otherwise) {
  const char* found = Verilated::threadContextp()->commandArgsPlusMatch(prefix);
  return *found != '\0' ? std::strtoull(found + 1 + std::strlen(prefix), nullptr, 10) : otherwise;
}

class WindowedSaif : public VerilatedSaifC {
 public:
  void dump(uint64_t time) {
    if (first_ <= time && time <= last_) VerilatedSaifC::dump(time);
  }

 private:
  uint64_t first_ = plusarg("wave_from=", 0);
  uint64_t last_ = plusarg("wave_to=", UINT64_MAX);
};

}  // namespace

#define VerilatedSaifC WindowedSaif
#include "verilator.cpp"
