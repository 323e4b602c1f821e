// SPDX-License-Identifier: Apache-2.0
//
// A host in plain C++ over the same Verilated library as the fast build: the yardstick for the speed
// of the bench under Python. It resets the chip, works through a list of register accesses (lines
// "write ADDRESS VALUE", "read ADDRESS", "interrupt LIMIT"), and prints what it read, one value per
// line, and for each interrupt the processor time that it slept for, in seconds.

#include <ctime>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"

namespace {

VerilatedContext* context = nullptr;
std::unique_ptr<Vtop> top;
uint64_t now = 0;  // simulated time

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

// What the chip answers is looked at before the edge at which it counts.
void write_register(uint16_t address, uint32_t value) {
  Vtop___024root* const root = top->rootp;
  root->tb_top__DOT__S_AXIL_AWADDR = address;
  root->tb_top__DOT__S_AXIL_WDATA = value;
  root->tb_top__DOT__S_AXIL_WSTRB = 0xF;
  root->tb_top__DOT__S_AXIL_AWVALID = 1;
  root->tb_top__DOT__S_AXIL_WVALID = 1;
  root->tb_top__DOT__S_AXIL_BREADY = 1;
  bool answered = false;
  while (!answered) {
    top->eval();
    const bool address_taken = root->tb_top__DOT__S_AXIL_AWREADY;
    const bool data_taken = root->tb_top__DOT__S_AXIL_WREADY;
    answered = root->tb_top__DOT__S_AXIL_BVALID;
    if (answered && root->tb_top__DOT__S_AXIL_BRESP != 0) die("a register write was refused");
    step();
    if (address_taken) root->tb_top__DOT__S_AXIL_AWVALID = 0;
    if (data_taken) root->tb_top__DOT__S_AXIL_WVALID = 0;
  }
  root->tb_top__DOT__S_AXIL_BREADY = 0;
}

uint32_t read_register(uint16_t address) {
  Vtop___024root* const root = top->rootp;
  root->tb_top__DOT__S_AXIL_ARADDR = address;
  root->tb_top__DOT__S_AXIL_ARVALID = 1;
  root->tb_top__DOT__S_AXIL_RREADY = 1;
  uint32_t value = 0;
  bool answered = false;
  while (!answered) {
    top->eval();
    const bool address_taken = root->tb_top__DOT__S_AXIL_ARREADY;
    answered = root->tb_top__DOT__S_AXIL_RVALID;
    value = root->tb_top__DOT__S_AXIL_RDATA;
    if (answered && root->tb_top__DOT__S_AXIL_RRESP != 0) die("a register read was refused");
    step();
    if (address_taken) root->tb_top__DOT__S_AXIL_ARVALID = 0;
  }
  root->tb_top__DOT__S_AXIL_RREADY = 0;
  return value;
}

double processor_seconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double wait_interrupt(uint32_t limit) {
  const double started = processor_seconds();
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
  const std::string list = context->commandArgsPlusMatch("accesses=");
  std::ifstream accesses(list.substr(list.find('=') + 1));
  if (!accesses) die("+accesses=<file> is missing or cannot be read");
  top = std::make_unique<Vtop>(context, "");  // the name that cocotb's main gives, too
  top->eval();
  for (int cycle = 0; cycle < 5; ++cycle) step();
  top->rootp->tb_top__DOT__rst_n = 1;
  for (int cycle = 0; cycle < 2; ++cycle) step();

  std::string kind;
  while (accesses >> kind) {
    uint32_t first = 0, second = 0;
    accesses >> first;
    if (kind == "write") {
      accesses >> second;
      write_register(static_cast<uint16_t>(first), second);
    } else if (kind == "read") {
      std::printf("%u\n", read_register(static_cast<uint16_t>(first)));
    } else if (kind == "interrupt") {
      std::printf("%.9f\n", wait_interrupt(first));
    } else {
      die("unknown access " + kind);
    }
  }
  top->rootp->tb_top__DOT__sync = 1;
  top->eval();
  top->final();
  top.reset();  // before the library's own globals go
  return 0;
}
