// SPDX-License-Identifier: Apache-2.0
//
// A board as a program: its serial port is a pseudo-terminal, whose name is the first line that is
// printed. What a host writes there comes bit by bit over the line of the UART, and back. The clock runs
// until the program is ended, or the one that started it.

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>

#include "Vboard.h"
#include "verilated.h"

namespace {

constexpr int kBits = 10;  // of a frame: start, eight of data, stop
constexpr int kLook = 64;  // cycles between two looks at the terminal

// What a UART sends: a level in each cycle.
class Sender {
 public:
  explicit Sender(int divisor) : divisor_(divisor) {}
  bool idle() const { return left_ == 0; }
  void send(uint8_t byte) {
    frame_ = (1U << 9) | (static_cast<unsigned>(byte) << 1);
    left_ = kBits * divisor_;
  }
  bool level() {
    if (idle()) return true;
    const int bit = kBits - 1 - (left_ - 1) / divisor_;
    --left_;
    return ((frame_ >> bit) & 1U) != 0;
  }

 private:
  const int divisor_;
  unsigned frame_ = 0;
  int left_ = 0;
};

// What a UART receives: the byte whose frame ends in this cycle, -1 for none.
class Receiver {
 public:
  explicit Receiver(int divisor) : divisor_(divisor) {}
  int take(bool level) {
    if (time_ < 0) {
      if (!level) time_ = 0;
      return -1;
    }
    ++time_;
    const int bit = time_ / divisor_;
    if (time_ % divisor_ != divisor_ / 2) return -1;
    if (bit > 0 && bit < kBits - 1) data_ |= static_cast<int>(level) << (bit - 1);
    if (bit < kBits - 1) return -1;
    const int found = data_;
    data_ = 0;
    time_ = -1;
    if (!level) std::fputs("board: a frame without its stop bit\n", stderr);
    return found;
  }

 private:
  const int divisor_;
  int data_ = 0;
  int time_ = -1;
};

// Returns the terminal's end of the board, -1 if there is none.
int open_terminal() {
  const int board = posix_openpt(O_RDWR | O_NOCTTY);
  if (board < 0 || grantpt(board) != 0 || unlockpt(board) != 0) return -1;
  const char* name = ptsname(board);
  if (name == nullptr) return -1;
  // The host's end stays open, so that hosts may come and go.
  const int host = open(name, O_RDWR | O_NOCTTY);
  struct termios mode {};
  if (host < 0 || tcgetattr(host, &mode) != 0) return -1;
  cfmakeraw(&mode);
  if (tcsetattr(host, TCSANOW, &mode) != 0) return -1;
  if (fcntl(board, F_SETFL, O_NONBLOCK) != 0) return -1;
  std::printf("%s\n", name);
  std::fflush(stdout);
  return board;
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  VerilatedContext context;
  context.commandArgs(argc, argv);
  const int divisor = argc > 1 ? std::atoi(argv[1]) : 0;
  if (divisor < 4) {
    std::fputs("board: cycles of a bit: at least 4\n", stderr);
    return 2;
  }
  const int terminal = open_terminal();
  if (terminal < 0) {
    std::perror("board: no pseudo-terminal");
    return 2;
  }
  const auto board = std::make_unique<Vboard>(&context);
  Sender sender(divisor);
  Receiver receiver(divisor);
  std::deque<uint8_t> waiting;
  board->rst_ni = 0;
  board->uart_rx_i = 1;
  for (uint64_t cycle = 0; !context.gotFinish(); ++cycle) {
    if (cycle == kLook / 2) board->rst_ni = 1;
    if (cycle > 0 && cycle % kLook == 0 && waiting.empty()) {
      uint8_t bytes[4096];
      const ssize_t count = read(terminal, bytes, sizeof bytes);
      if (count > 0) waiting.insert(waiting.end(), bytes, bytes + count);
    }
    if (sender.idle() && !waiting.empty()) {
      sender.send(waiting.front());
      waiting.pop_front();
    }
    board->uart_rx_i = sender.level();
    board->clk_12_i = 0;
    board->eval();
    context.timeInc(1);
    board->clk_12_i = 1;
    board->eval();
    context.timeInc(1);
    const int received = receiver.take(board->uart_tx_o);
    if (received < 0) continue;
    const uint8_t byte = static_cast<uint8_t>(received);
    while (write(terminal, &byte, 1) < 0 && errno == EAGAIN) usleep(1000);
  }
  board->final();
  return 0;
}
