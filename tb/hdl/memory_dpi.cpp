// SPDX-License-Identifier: Apache-2.0
//
// The C++ side of the bench: maps the files that Python shares (memory.bin, sram.bin, the list of
// register accesses in accesses.bin, that of the coprocessor's instructions in offers.bin) and appends the logs of SRAM writes, engine events and the trace (sram_writes.bin, events.bin, trace.bin), all
// in the run's folder.
// Write data is held until the response is sent, so that nobody sees it early.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include "dram.h"
#include "svdpi.h"

namespace {

constexpr size_t kBeatBytes = 16;

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "tb: %s\n", message.c_str());
  std::exit(1);
}

struct Mapping {
  uint8_t* bytes = nullptr;
  size_t size = 0;
};

Mapping map_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR);
  if (fd < 0) die("cannot open " + path + " (the runner creates it before the run)");
  struct stat info;
  if (fstat(fd, &info) != 0) die("cannot read the size of " + path);
  Mapping mapping;
  mapping.size = static_cast<size_t>(info.st_size);
  void* bytes = mmap(nullptr, mapping.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED) die("cannot map " + path);
  mapping.bytes = static_cast<uint8_t*>(bytes);
  return mapping;
}

FILE* create_log(const std::string& path) {
  // Appending: Python empties a log before the next test of the same process.
  FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) die("cannot create " + path);
  std::setvbuf(file, nullptr, _IOFBF, 1 << 20);
  return file;
}

struct WriteRecord {
  uint64_t cycle;
  uint32_t instr;
  uint16_t port;
  uint16_t word;
  uint8_t data[kBeatBytes];
};
static_assert(sizeof(WriteRecord) == 32, "tb/bench/logs.py reads 32-byte records");

struct EventRecord {
  uint64_t cycle;
  uint16_t kind;
  uint16_t engine;
  uint32_t instr;
  uint8_t word[kBeatBytes];
};
static_assert(sizeof(EventRecord) == 32, "tb/bench/logs.py reads 32-byte records");

struct AccessRecord {
  uint32_t address;
  uint32_t data;
  uint8_t strobe;
  uint8_t writes;
  uint8_t with_next;
  uint8_t resp;
};
static_assert(sizeof(AccessRecord) == 12, "tb/bench/accesses.py writes 12-byte records");

constexpr size_t kOfferBytes = 64;  // tb/bench/offers.py writes records of so many

struct HeldBeat {
  uint32_t address;
  uint16_t strobe;
  uint8_t data[kBeatBytes];
};

struct Bench {
  Mapping memory;
  Mapping sram;
  Mapping accesses;
  Mapping offers;
  std::string folder;
  FILE* writes = nullptr;
  FILE* events = nullptr;
  FILE* trace = nullptr;
  std::deque<HeldBeat> held;
  dram::Dram dram;
};

Bench& bench() {
  static Bench instance;
  return instance;
}

AccessRecord& access_at(unsigned int index) {
  if ((index + size_t{1}) * sizeof(AccessRecord) > bench().accesses.size) {
    die("a list of register accesses is longer than accesses.bin");
  }
  return reinterpret_cast<AccessRecord*>(bench().accesses.bytes)[index];
}

// The list of the coprocessor's agent; Python makes the file when it plays for the first time.
uint8_t* offer_at(unsigned int index) {
  if (bench().offers.bytes == nullptr) bench().offers = map_file(bench().folder + "offers.bin");
  if ((index + size_t{1}) * kOfferBytes > bench().offers.size) {
    die("a list of instructions is longer than offers.bin");
  }
  return bench().offers.bytes + index * kOfferBytes;
}

void log_event(FILE* file, uint64_t cycle, unsigned int kind, unsigned int engine,
               unsigned int instr, const svBitVecVal* word) {
  EventRecord record{cycle, static_cast<uint16_t>(kind), static_cast<uint16_t>(engine), instr, {}};
  std::memcpy(record.word, word, kBeatBytes);
  std::fwrite(&record, sizeof(record), 1, file);
}

}  // namespace

extern "C" {

void tb_open(const char* run_dir, unsigned int sram_bytes) {
  const std::string folder = std::string(run_dir) + "/";
  bench().folder = folder;
  bench().memory = map_file(folder + "memory.bin");
  bench().sram = map_file(folder + "sram.bin");
  if (bench().sram.size != sram_bytes) die("sram.bin has another size than the SRAM of the design");
  bench().accesses = map_file(folder + "accesses.bin");
  bench().writes = create_log(folder + "sram_writes.bin");
  bench().events = create_log(folder + "events.bin");
  bench().trace = create_log(folder + "trace.bin");
}

svBit tb_memory_has(unsigned int address) {
  return static_cast<size_t>(address) + kBeatBytes <= bench().memory.size;
}

void tb_memory_read(unsigned int address, svBitVecVal* data) {
  std::memcpy(data, bench().memory.bytes + address, kBeatBytes);
}

void tb_memory_now(unsigned int address, const svBitVecVal* data) {
  std::memcpy(bench().memory.bytes + address, data, kBeatBytes);
}

void tb_memory_hold(unsigned int address, const svBitVecVal* data, const svBitVecVal* strobe) {
  HeldBeat beat;
  beat.address = address;
  beat.strobe = static_cast<uint16_t>(*strobe);
  std::memcpy(beat.data, data, kBeatBytes);
  bench().held.push_back(beat);
}

void tb_memory_commit(unsigned int beats) {
  for (; beats > 0; --beats) {
    const HeldBeat& beat = bench().held.front();
    for (size_t i = 0; i < kBeatBytes; ++i) {
      if ((beat.strobe >> i) & 1) bench().memory.bytes[beat.address + i] = beat.data[i];
    }
    bench().held.pop_front();
  }
}

void tb_memory_forget() { bench().held.clear(); }

void tb_dram_forget() { bench().dram = {}; }

// What is asked for next is asked of this part; it begins with the first access.
void tb_dram_choose(unsigned int kind, unsigned int seed) {
  const dram::Timing& part = kind == 1 ? dram::kDdr4 : dram::kLpddr4;
  if (bench().dram.is(part)) return;
  if (!bench().dram.idle()) die("knob_memory changed from one DRAM to another while one is read");
  bench().dram.reset(part, seed);
}

void tb_dram_read(uint64_t cycle, unsigned int address, unsigned int beats) {
  bench().dram.read(cycle, address, beats);
}

svBit tb_dram_readable(uint64_t cycle) { return bench().dram.readable(cycle); }

void tb_dram_take() { bench().dram.take(); }

svBit tb_dram_room(uint64_t cycle) { return bench().dram.room(cycle); }

unsigned int tb_dram_write(uint64_t cycle, unsigned int address, unsigned int beats) {
  return bench().dram.write(cycle, address, beats);
}

void tb_sram_store(unsigned int word, const svBitVecVal* data) {
  std::memcpy(bench().sram.bytes + word * kBeatBytes, data, kBeatBytes);
}

void tb_sram_load(unsigned int word, svBitVecVal* data) {
  std::memcpy(data, bench().sram.bytes + word * kBeatBytes, kBeatBytes);
}

void tb_access_get(unsigned int index, svBitVecVal* address, svBitVecVal* data,
                   svBitVecVal* strobe, svBit* writes, svBit* with_next) {
  const AccessRecord& access = access_at(index);
  *address = access.address;
  *data = access.data;
  *strobe = access.strobe;
  *writes = access.writes;
  *with_next = access.with_next;
}

void tb_access_answer(unsigned int index, const svBitVecVal* data, const svBitVecVal* resp) {
  AccessRecord& access = access_at(index);
  if (!access.writes) access.data = *data;
  access.resp = static_cast<uint8_t>(*resp);
}

void tb_offer_get(unsigned int index, svBitVecVal* offer) {
  std::memcpy(offer, offer_at(index), kOfferBytes);
}

void tb_offer_put(unsigned int index, const svBitVecVal* offer) {
  std::memcpy(offer_at(index), offer, kOfferBytes);
}

void tb_log_write(uint64_t cycle, unsigned int instr, unsigned int port, unsigned int word,
                  const svBitVecVal* data) {
  WriteRecord record{cycle, instr, static_cast<uint16_t>(port), static_cast<uint16_t>(word), {}};
  std::memcpy(record.data, data, kBeatBytes);
  std::fwrite(&record, sizeof(record), 1, bench().writes);
}

void tb_log_event(uint64_t cycle, unsigned int kind, unsigned int engine, unsigned int instr,
                  const svBitVecVal* word) {
  log_event(bench().events, cycle, kind, engine, instr, word);
}

void tb_log_trace(uint64_t cycle, unsigned int kind, unsigned int engine, unsigned int instr,
                  const svBitVecVal* word) {
  log_event(bench().trace, cycle, kind, engine, instr, word);
}

void tb_flush() {
  std::fflush(bench().writes);
  std::fflush(bench().events);
  std::fflush(bench().trace);
}

}  // extern "C"
