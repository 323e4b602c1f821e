// SPDX-License-Identifier: Apache-2.0
//
// The datapath's model as a library for Python, and its comparison with the C library's functions in
// double. Those are off by some units in the last place: an input is decided if everything that the
// function can be rounds to the same result; else it is left to whoever called.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#include "datapath.h"

namespace {

using datapath::Result;

// The functions, in the order of FUNCTIONS of the Python module.
enum Function { kExpFloat, kExpFixed, kGelu, kRsqrtFloat, kRsqrtFixed };

constexpr uint64_t kNear = 1 << 13;  // 2^-50 of a result, in units of 2^-63
constexpr uint64_t kMost = 4096;     // inputs of a list

// What a part of a sweep has found; lists hold at most kMost inputs.
struct Summary {
  uint64_t reached = 0;
  uint64_t closest = ~uint64_t{0};
  uint64_t closest_input = 0;
  uint64_t wrong = 0, undecided = 0, near = 0;  // lengths of the lists
  uint32_t wrong_inputs[kMost], undecided_inputs[kMost], near_inputs[kMost];
};

Result computed(int function, uint32_t x) {
  switch (function) {
    case kExpFloat:
      return datapath::exp_float(x);
    case kExpFixed:
      return datapath::exp_fixed(x);
    case kGelu:
      return datapath::gelu(x);
    case kRsqrtFloat:
      return datapath::rsqrt_float(x);
    default:
      return datapath::rsqrt_fixed(x);
  }
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t bits_of(float value) {
  if (std::isnan(value)) return datapath::kNan;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Both ends of what a function can be.
struct Range {
  double low, high;
};

Range around(double value, double margin) {
  return {value * (1 - margin), value * (1 + margin)};
}

Range float_range(int function, double x) {
  if (function == kExpFloat) return around(std::exp(x), 0x1p-50);
  if (function == kGelu) {
    if (x == 0 || std::isinf(x)) return around(x < 0 ? -0.0 : x, 0);
    // Larger than half of x, but not by much.
    if (std::fabs(x) < 0x1p-31) {
      return {std::nextafter(x / 2, 1), x / 2 + std::fabs(x) * 0x1p-32};
    }
    // The error of x / sqrt 2 counts x^2 times.
    const double margin = 0x1p-49 + std::fmin(x * x, 300) * 0x1p-51;
    return around(x * std::erfc(-x / std::sqrt(2.0)) / 2, margin);
  }
  if (x == 0) return around(INFINITY, 0);
  return around(1 / std::sqrt(x), 0x1p-51);
}

uint32_t integer_of(double value) {
  const double rounded = std::nearbyint(value);
  return rounded < 2147483647.0 ? static_cast<uint32_t>(rounded) : datapath::kFixedMost;
}

// Returns whether the result is decided, and which one it is.
bool decided(int function, uint32_t x, uint32_t* bits) {
  if (function == kExpFixed || function == kRsqrtFixed) {
    const double number = static_cast<int32_t>(x);
    const bool none = function == kRsqrtFixed && number <= 0;
    const double value = none                     ? 0x1p40
                         : function == kExpFixed ? std::exp(number / 65536) * 65536
                                                 : 16777216 / std::sqrt(number);
    const Range range = around(value, 0x1p-50);
    *bits = integer_of(range.low);
    return *bits == integer_of(range.high);
  }
  const Range range = float_range(function, float_of(x));
  *bits = bits_of(static_cast<float>(range.low));
  return *bits == bits_of(static_cast<float>(range.high));
}

void add(uint32_t* list, uint64_t* length, uint32_t x) {
  if (*length < kMost) list[*length] = x;
  ++*length;
}

}  // namespace

extern "C" {

uint64_t cop_summary_bytes() { return sizeof(Summary); }

// Results and raw values of n inputs.
void cop_compute(int function, uint64_t n, const uint32_t* x, uint32_t* bits, uint64_t* raw) {
  for (uint64_t i = 0; i < n; ++i) {
    const Result result = computed(function, x[i]);
    bits[i] = result.bits;
    raw[i] = result.raw;
  }
}

// Compares `n` inputs from `first` on, `step` apart.
void cop_sweep(int function, uint64_t first, uint64_t step, uint64_t n, Summary* out) {
  Summary& summary = *new (out) Summary;
  for (uint64_t i = 0; i < n; ++i) {
    const uint32_t x = static_cast<uint32_t>(first + i * step);
    const Result result = computed(function, x);
    uint32_t expected;
    if (!decided(function, x, &expected)) {
      add(summary.undecided_inputs, &summary.undecided, x);
    } else if (result.bits != expected) {
      add(summary.wrong_inputs, &summary.wrong, x);
    }
    if (!result.reached) continue;
    ++summary.reached;
    if (result.distance < summary.closest) {
      summary.closest = result.distance;
      summary.closest_input = x;
    }
    // The significands of two octaves recur in all others.
    const bool recurs = function == kRsqrtFloat && (x < 0x3F800000 || x > 0x407FFFFF);
    if (result.distance < kNear && !recurs) add(summary.near_inputs, &summary.near, x);
  }
}

}  // extern "C"
