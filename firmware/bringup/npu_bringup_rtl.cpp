// SPDX-License-Identifier: Apache-2.0
//
// The bring-up on the RTL: the same C beside Verilator's model of chip and memory (tessera_machine),
// whose words are the memory that the bus maps. With --registers it takes lines "r PLACE" and
// "w PLACE VALUE" in hexadecimal instead, and answers each.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "Vtessera_machine.h"
#include "Vtessera_machine___024root.h"
#include "npu_bringup.h"

namespace {

constexpr unsigned kMostCycles = 100000;  // of one wait

class RtlMachine {
 public:
  RtlMachine() {
    top_.aresetn = 0;
    for (int i = 0; i < 4; i++) tick();
    top_.aresetn = 1;
    for (int i = 0; i < 4; i++) tick();
  }

  ~RtlMachine() { top_.final(); }

  uint32_t read(uint32_t place) {
    top_.s_axil_araddr = place;
    top_.s_axil_arvalid = 1;
    top_.s_axil_rready = 1;
    until(top_.s_axil_arready);
    tick();
    top_.s_axil_arvalid = 0;
    until(top_.s_axil_rvalid);
    const uint32_t value = top_.s_axil_rdata;
    tick();
    return value;
  }

  void write(uint32_t place, uint32_t value) {
    top_.s_axil_awaddr = place;
    top_.s_axil_wdata = value;
    top_.s_axil_wstrb = 15;
    top_.s_axil_awvalid = top_.s_axil_wvalid = 1;
    top_.s_axil_bready = 1;
    until(top_.s_axil_awready);  // the data are taken together with the address
    tick();
    top_.s_axil_awvalid = top_.s_axil_wvalid = 0;
    until(top_.s_axil_bvalid);
    tick();
  }

  void wait() { until(top_.irq); }

  volatile uint8_t *memory() {
    return reinterpret_cast<uint8_t *>(&top_.rootp->tessera_machine__DOT__u_memory__DOT__words[0]);
  }

  uint32_t size() const {
    return sizeof top_.rootp->tessera_machine__DOT__u_memory__DOT__words;
  }

 private:
  // One cycle; inputs that were changed before it count in it.
  void tick() {
    top_.aclk = 1;
    top_.eval();
    top_.aclk = 0;
    top_.eval();
  }

  void until(const CData &signal) {
    top_.eval();
    for (unsigned cycles = 0; !signal; cycles++) {
      if (cycles == kMostCycles) {
        std::puts("rtl: no answer");
        std::exit(1);
      }
      tick();
    }
  }

  Vtessera_machine top_;
};

RtlMachine &of(void *context) { return *static_cast<RtlMachine *>(context); }

void serve(RtlMachine &machine) {
  unsigned place, value;
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::sscanf(line, "r %x", &place) == 1) {
      std::printf("%08x\n", machine.read(place));
    } else if (std::sscanf(line, "w %x %x", &place, &value) == 2) {
      machine.write(place, value);
      std::puts("ok");
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char **words) {
  RtlMachine machine;
  if (count > 1 && std::strcmp(words[1], "--registers") == 0) {
    serve(machine);
    return 0;
  }
  npu_bus bus = {};
  bus.context = &machine;
  bus.read = [](void *context, uint32_t place) { return of(context).read(place); };
  bus.write = [](void *context, uint32_t place, uint32_t value) { of(context).write(place, value); };
  bus.wait = [](void *context) { of(context).wait(); };
  bus.memory = machine.memory();
  bus.address = 0;
  bus.size = machine.size();
  const char *wrong = npu_bringup(&bus);
  std::puts(wrong != nullptr ? wrong : "npu: bring-up passed");
  return wrong != nullptr;
}
