// SPDX-License-Identifier: Apache-2.0
//
// A DRAM behind its controller: banks, rows, activate, precharge, refresh, the turn of the bus, at the
// timings of a published part. What is asked for waits in a queue of reads and one of writes. In every
// clock one command goes out: of those that the timings allow the column access whose row is open and
// which waits longest, else what brings the oldest access nearer (first ready, first come). Reads are
// answered in the order in which they were asked for. Writes count as done when they wait here; they go
// out in groups, when many of them wait or nothing is to be read, because each turn of the bus costs.
// Only time is kept here: the bytes are in memory.bin.

#ifndef TESSERA_DRAM_H
#define TESSERA_DRAM_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace dram {

// Of a part and its speed, in clocks; `s` is between two bank groups, `l` within one.
struct Timing {
  unsigned clocks;        // in a cycle of the bus
  unsigned groups;        // bank groups
  unsigned banks;         // banks of a group
  unsigned line;          // bytes of a column access
  unsigned lines;         // column accesses of a row
  unsigned burst;         // for which one has the data bus
  unsigned rl, wl;        // from the command of a read, a write to its data
  unsigned turn;          // between the data of a read and of a write
  unsigned rcd;           // activate to column access
  unsigned rp, rp_all;    // precharge, of all banks, to activate
  unsigned ras;           // activate to precharge
  unsigned rrd_s, rrd_l;  // activate to activate
  unsigned faw;           // for which there are four of them at most
  unsigned ccd_s, ccd_l;  // column access to column access
  unsigned wtr_s, wtr_l;  // end of the data of a write to read
  unsigned wr;            // end of the data of a write to precharge
  unsigned rtp;           // read to precharge
  unsigned refi, rfc;     // from refresh to refresh, and what one takes
  unsigned controller;    // cycles from the end of a read's data to the bus, or to a write's answer
};

// DDR4-2400T of 8 Gb by 8, a rank of 64 bits (JESD79-4). A cycle of the bus is a clock of 1,200 MHz:
// both take 16 bytes in it.
inline constexpr Timing kDdr4 = {
    .clocks = 1, .groups = 4, .banks = 4, .line = 64, .lines = 128, .burst = 4,
    .rl = 17, .wl = 12, .turn = 2, .rcd = 17, .rp = 17, .rp_all = 17, .ras = 39,
    .rrd_s = 4, .rrd_l = 6, .faw = 26, .ccd_s = 4, .ccd_l = 6, .wtr_s = 3, .wtr_l = 9,
    .wr = 18, .rtp = 9, .refi = 9360, .rfc = 420, .controller = 10};

// LPDDR4-3200 of 8 Gb, a channel of 16 bits (JESD209-4). A cycle of the bus is four clocks of 1,600 MHz.
inline constexpr Timing kLpddr4 = {
    .clocks = 4, .groups = 1, .banks = 8, .line = 32, .lines = 64, .burst = 8,
    .rl = 28, .wl = 14, .turn = 8, .rcd = 29, .rp = 29, .rp_all = 34, .ras = 68,
    .rrd_s = 16, .rrd_l = 16, .faw = 64, .ccd_s = 8, .ccd_l = 8, .wtr_s = 16, .wtr_l = 16,
    .wr = 29, .rtp = 12, .refi = 6246, .rfc = 448, .controller = 4};

enum class Command : uint8_t { kActivate, kRead, kWrite, kPrecharge, kPrechargeAll, kRefresh };

class Dram {
 public:
  // Called with each command: clock, command, bank (group first), row or column.
  using Log = std::function<void(uint64_t, Command, unsigned, uint32_t)>;

  // Forgets everything. The seed says where in its interval the first refresh is.
  void reset(const Timing& timing, uint32_t seed) {
    timing_ = &timing;
    banks_.assign(timing.groups * timing.banks, Bank{});
    groups_.assign(timing.groups, Group{});
    activates_.fill(0);
    reads_.clear();
    writes_.clear();
    next_ = Group{};
    to_read_ = 0;
    seed_ = seed;
    begun_ = refreshing_ = writing_ = false;
  }

  // Whether it is of a part, since the last reset.
  bool is(const Timing& timing) const { return timing_ == &timing; }

  // Whether nothing is read.
  bool idle() const { return reads_.empty(); }

  // A burst of beats is asked for in a cycle.
  void read(uint64_t cycle, uint32_t address, unsigned beats) {
    advance(cycle);
    each_line(address, beats, [this](Access access) {
      // What waits to be written needs no read.
      for (const Access& write : writes_) {
        if (write.where == access.where) access.done = true, access.at = now_;
      }
      to_read_ += !access.done;
      reads_.push_back(access);
    });
  }

  // Whether the next beat of the reads is there in a cycle.
  bool readable(uint64_t cycle) {
    advance(cycle);
    if (reads_.empty() || !reads_.front().done) return false;
    const uint64_t at = reads_.front().at + uint64_t{timing_->controller} * timing_->clocks;
    return at <= cycle * timing_->clocks;
  }

  // Takes that beat.
  void take() {
    if (--reads_.front().beats == 0) reads_.pop_front();
  }

  // Whether one more burst of writes has room in a cycle.
  bool room(uint64_t cycle) {
    if (timing_ == nullptr) return true;
    advance(cycle);
    return writes_.size() <= kWrites;
  }

  // A burst of writes is there in a cycle; returns the cycles until it is answered.
  unsigned write(uint64_t cycle, uint32_t address, unsigned beats) {
    advance(cycle);
    each_line(address, beats, [this](const Access& access) {
      for (const Access& write : writes_) {
        if (write.where == access.where) return;  // both go out together
      }
      writes_.push_back(access);
    });
    return timing_->controller;
  }

  Log log;

 private:
  static constexpr unsigned kBeat = 16;      // bytes of a cycle of the bus
  static constexpr size_t kWrites = 32;      // lines that wait before no more are taken
  static constexpr size_t kManyWrites = 24;  // from here on they go first
  static constexpr size_t kFewWrites = 8;    // until so many are left
  static constexpr size_t kAhead = 64;       // accesses that are looked at

  struct Access {
    uint64_t where;  // line
    unsigned bank, group;
    uint32_t row, column;
    unsigned beats;
    bool done = false;
    uint64_t at = 0;  // with done: when the last of its data is there
  };

  struct Bank {
    bool open = false;
    uint32_t row = 0;
    uint64_t activate = 0, precharge = 0, column = 0;  // from when on there may be one
  };

  struct Group {
    uint64_t activate = 0, read = 0, write = 0;
  };

  template <typename Take>
  void each_line(uint32_t address, unsigned beats, Take take) {
    const uint64_t end = uint64_t{address} + uint64_t{beats} * kBeat;
    for (uint64_t at = address; at < end;) {
      const uint64_t line = at / timing_->line;
      const uint64_t next = std::min(end, (line + 1) * timing_->line);
      Access access = place(line);
      access.beats = static_cast<unsigned>((next - at) / kBeat);
      take(access);
      at = next;
    }
  }

  // Lines that follow each other lie in different groups, rows in different banks; the row turns the
  // banks, so that arrays at a distance of many rows seldom meet in one.
  Access place(uint64_t line) const {
    Access access{};
    access.where = line;
    access.group = static_cast<unsigned>(line % timing_->groups);
    line /= timing_->groups;
    access.column = static_cast<uint32_t>(line % timing_->lines);
    line /= timing_->lines;
    access.row = static_cast<uint32_t>(line / timing_->banks);
    const unsigned bank = static_cast<unsigned>((line + access.row) % timing_->banks);
    access.bank = access.group * timing_->banks + bank;
    return access;
  }

  // Lets all clocks before a cycle pass.
  void advance(uint64_t cycle) {
    const uint64_t until = cycle * timing_->clocks;
    if (!begun_) {
      begun_ = true;
      now_ = until;
      refresh_ = now_ + 1 + seed_ % timing_->refi;
    }
    while (now_ < until) {
      // Where nothing waits only the refresh has something to do.
      if (writes_.empty() && !refreshing_ && now_ < refresh_ && to_read_ == 0) {
        now_ = std::min(until, refresh_);
      } else {
        step();
        ++now_;
      }
    }
  }

  void step() {
    if (now_ >= refresh_) refreshing_ = true;
    if (refreshing_) {
      refresh();
      return;
    }
    const bool reads = to_read_ != 0;
    if (writing_) writing_ = writes_.size() > (reads ? kFewWrites : 0);
    else writing_ = writes_.size() >= (reads ? kManyWrites : 1);
    choose(writing_ ? writes_ : reads_);
  }

  void refresh() {
    bool any = false, may = true;
    for (const Bank& bank : banks_) {
      any |= bank.open;
      may &= now_ >= (bank.open ? bank.precharge : 0);
    }
    if (any) {
      if (!may) return;
      for (Bank& bank : banks_) {
        bank.open = false;
        bank.activate = std::max(bank.activate, now_ + timing_->rp_all);
      }
      tell(Command::kPrechargeAll, 0, 0);
      return;
    }
    for (const Bank& bank : banks_) may &= now_ >= bank.activate;
    if (!may) return;
    for (Bank& bank : banks_) bank.activate = now_ + timing_->rfc;
    refresh_ += timing_->refi;
    refreshing_ = false;
    tell(Command::kRefresh, 0, 0);
  }

  void choose(std::deque<Access>& queue) {
    const size_t count = std::min(queue.size(), kAhead);
    uint32_t hit = 0, seen = 0;  // banks whose open row somebody waits for; that an older one needs
    for (size_t i = 0; i < count; ++i) {
      const Access& access = queue[i];
      const Bank& bank = banks_[access.bank];
      if (access.done || !bank.open || bank.row != access.row) continue;
      hit |= 1u << access.bank;
      if (now_ >= bank.column && column_allowed(access)) {
        column(queue, i);
        return;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Access& access = queue[i];
      if (access.done || (seen >> access.bank & 1)) continue;
      seen |= 1u << access.bank;
      Bank& bank = banks_[access.bank];
      if (!bank.open && now_ >= bank.activate && activate_allowed(access)) {
        activate(access);
        return;
      }
      if (bank.open && !(hit >> access.bank & 1) && now_ >= bank.precharge) {
        bank.open = false;
        bank.activate = std::max(bank.activate, now_ + timing_->rp);
        tell(Command::kPrecharge, access.bank, bank.row);
        return;
      }
    }
  }

  bool column_allowed(const Access& access) const {
    const Group& group = groups_[access.group];
    return writing_ ? now_ >= next_.write && now_ >= group.write
                    : now_ >= next_.read && now_ >= group.read;
  }

  bool activate_allowed(const Access& access) const {
    return now_ >= next_.activate && now_ >= groups_[access.group].activate &&
           now_ >= activates_[0];
  }

  void activate(const Access& access) {
    Bank& bank = banks_[access.bank];
    bank.open = true;
    bank.row = access.row;
    bank.column = now_ + timing_->rcd;
    bank.precharge = now_ + timing_->ras;
    next_.activate = now_ + timing_->rrd_s;
    groups_[access.group].activate = now_ + timing_->rrd_l;
    // The fifth waits for the end of the window that the first one has opened.
    std::rotate(activates_.begin(), activates_.begin() + 1, activates_.end());
    activates_.back() = now_ + timing_->faw;
    tell(Command::kActivate, access.bank, access.row);
  }

  void column(std::deque<Access>& queue, size_t index) {
    Access& access = queue[index];
    Bank& bank = banks_[access.bank];
    Group& group = groups_[access.group];
    const Timing& t = *timing_;
    if (writing_) {
      const uint64_t end = now_ + t.wl + t.burst;
      next_.write = now_ + t.ccd_s;
      group.write = now_ + t.ccd_l;
      next_.read = std::max(next_.read, end + t.wtr_s);
      group.read = std::max(group.read, end + t.wtr_l);
      bank.precharge = std::max(bank.precharge, end + t.wr);
      tell(Command::kWrite, access.bank, access.column);
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
    } else {
      next_.read = now_ + t.ccd_s;
      group.read = now_ + t.ccd_l;
      next_.write = std::max(next_.write, now_ + t.rl + t.burst + t.turn - t.wl);
      bank.precharge = std::max(bank.precharge, now_ + t.rtp);
      access.done = true;
      --to_read_;
      access.at = now_ + t.rl + t.burst;
      tell(Command::kRead, access.bank, access.column);
    }
  }

  void tell(Command command, unsigned bank, uint32_t row) {
    if (log) log(now_, command, bank, row);
  }

  const Timing* timing_ = nullptr;
  std::vector<Bank> banks_;
  std::vector<Group> groups_;
  Group next_;                           // of all groups
  std::array<uint64_t, 4> activates_{};  // ends of the windows of the last four, the oldest first
  std::deque<Access> reads_, writes_;
  size_t to_read_ = 0;              // of the reads, those without a command
  uint64_t now_ = 0, refresh_ = 0;  // clocks
  uint32_t seed_ = 0;
  bool begun_ = false, refreshing_ = false, writing_ = false;
};

}  // namespace dram

#endif
