// SPDX-License-Identifier: Apache-2.0
//
// A host in plain C++ over the same Verilated library as the fast build: the yardstick for the speed
// of the bench under Python. It resets the chip, has the register accesses in accesses.bin played
// (so many as +accesses= says), waits for the interrupt, and prints the cycles of the program and the
// processor time, in seconds, from the last access to the interrupt.

#include <ctime>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"

namespace {

VerilatedContext* context = nullptr;
std::unique_ptr<Vtop> top;
uint64_t now = 0;  // simulated time
constexpr uint32_t kAccessLimit = 100;  // cycles
constexpr uint32_t kLimit = 1000000;

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "host: %s\n", message.c_str());
  std::fflush(nullptr);
  std::_Exit(1);  // the library does not survive an exit with its model alive
}

// Runs to just behind the next rising edge of the clock.
void step() {
  Vtop___024root* const root = top->rootp;
  bool before;
  do {
    if (!top->eventsPending()) die("the simulation has no more events");
    before = root->tb_top__DOT__clk;
    now = top->nextTimeSlot();
    top->eval();
    if (context->gotFinish()) die("the simulation has finished");
  } while (before || !root->tb_top__DOT__clk);
}

// Has the bench play the list of register accesses in accesses.bin.
void play(uint16_t count) {
  Vtop___024root* const root = top->rootp;
  root->tb_top__DOT__access_count = count;
  root->tb_top__DOT__access_play = !root->tb_top__DOT__access_played;
  uint32_t limit = count * kAccessLimit;
  while (root->tb_top__DOT__access_play != root->tb_top__DOT__access_played) {
    if (limit-- == 0) die("a register access has no answer");
    step();
  }
}

double processor_seconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double wait_interrupt() {
  const double started = processor_seconds();
  uint32_t limit = kLimit;
  while (!top->rootp->tb_top__DOT__irq) {
    if (limit-- == 0) die("no interrupt");
    step();
  }
  return processor_seconds() - started;
}

}  // namespace

// The library asks for the time.
double sc_time_stamp() { return static_cast<double>(now); }

int main(int argc, char** argv) {
  context = Verilated::threadContextp();
  context->commandArgs(argc, argv);
  const std::string count = context->commandArgsPlusMatch("accesses=");
  if (count.empty()) die("+accesses=<number> is missing");
  top = std::make_unique<Vtop>(context, "");  // the name that cocotb's main gives, too
  top->eval();
  for (int cycle = 0; cycle < 5; ++cycle) step();
  top->rootp->tb_top__DOT__rst_n = 1;
  for (int cycle = 0; cycle < 2; ++cycle) step();

  play(static_cast<uint16_t>(std::stoul(count.substr(count.find('=') + 1))));
  const double seconds = wait_interrupt();
  for (int cycle = 0; cycle < 5; ++cycle) step();  // until the monitors have seen it, too
  std::printf("%llu %.9f\n", static_cast<unsigned long long>(top->rootp->tb_top__DOT__perf_cycles),
              seconds);
  top->rootp->tb_top__DOT__sync = 1;
  top->eval();
  top->final();
  top.reset();  // before the library's own globals go
  return 0;
}
