// SPDX-License-Identifier: Apache-2.0
//
// The main program of simulators that record waveforms: cocotb's own, whose waveform file holds only
// what happens from +wave_from=<ns> to +wave_to=<ns>, both included; without them everything. After the
// end of the run its last values go on, for GTKWave opens no file at its end. Nothing of this is in the
// design, so that a recorded run has the cycles of any other.

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
  // The simulator may end on an assertion, without a call of close.
  WindowedFst() { Verilated::addExitCb(end, this); }
  ~WindowedFst() override { Verilated::removeExitCb(end, this); }

  void dump(uint64_t time) {
    if (time < first_ || time > last_) return;
    VerilatedFstC::dump(time);
    time_ = time;
  }

  void close() {
    if (isOpen() && time_ > 0 && time_ < last_) {
      VerilatedFstC::dump(last_ == kNever ? time_ + kTail : last_);
    }
    VerilatedFstC::close();
  }

 private:
  static void end(void* self) { static_cast<WindowedFst*>(self)->close(); }

  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint64_t kTail = 2000;

  uint64_t first_ = plusarg("wave_from=", 0);
  uint64_t last_ = plusarg("wave_to=", kNever);
  uint64_t time_ = 0;  // of the last values
};

}  // namespace

#define VerilatedFstC WindowedFst
#include "verilator.cpp"
