// SPDX-License-Identifier: Apache-2.0
//
// Notes when a mutant's place has another value than the original's (dev/mutation_model.py): records
// of number and time in differs.bin, in the run's folder, if the run has the plusarg +differs. In each
// stretch of time a mutant is noted once.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "verilated.h"

namespace {

constexpr int kStretchBits = 14;  // 16,384 ns

struct Note {
  uint64_t number;
  uint64_t nanoseconds;
};

class Notes {
 public:
  Notes() {
    if (Verilated::threadContextp()->commandArgsPlusMatch("differs")[0] == '\0') return;
    file_ = std::fopen("differs.bin", "wb");
    if (file_ == nullptr) {
      std::fprintf(stderr, "tb: cannot write differs.bin\n");
      std::exit(1);
    }
  }

  void differs(uint32_t number) {
    if (file_ == nullptr) return;
    const uint64_t now = Verilated::threadContextp()->time();
    const uint64_t stretch = (now >> kStretchBits) + 1;
    if (number >= last_.size()) last_.resize(number + 1);
    if (last_[number] == stretch) return;
    last_[number] = stretch;
    const Note note{number, now};
    std::fwrite(&note, sizeof note, 1, file_);
  }

 private:
  std::FILE* file_ = nullptr;  // closed by the end of the program
  std::vector<uint64_t> last_;
};

}  // namespace

extern "C" void npu_mutant_differs(unsigned int number) {
  static Notes notes;
  notes.differs(number);
}
