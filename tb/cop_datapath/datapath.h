// SPDX-License-Identifier: Apache-2.0
//
// What the coprocessor's units for exp, GELU and reciprocal roots compute, bit for bit, with every
// intermediate result cut off where the hardware cuts it off: rtl/cop/npu_cop_func*.sv,
// npu_cop_multiply.sv, npu_cop_root.sv.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "npu_cop_tables.h"

namespace datapath {

using u128 = unsigned __int128;

constexpr uint32_t kNan = 0x7FC00000, kInf = 0x7F800000, kFixedMost = 0x7FFFFFFF;

// A result; one that went through the datapath says how far from a rounding boundary it was.
struct Result {
  uint32_t bits;
  bool reached = false;   // the datapath; else a special value
  uint64_t raw = 0;       // before rounding, highest bit first
  uint64_t distance = 0;  // to the nearest boundary, in units of 2^-63 of the highest bit
};

// The upper half of a product without those of lower parts, as rtl/cop/npu_cop_multiply.sv leaves them out.
inline uint64_t high(uint64_t a, uint64_t b, int more = 0) {
  const u128 upper = static_cast<u128>(a) * (b >> 38);
  const u128 middle = static_cast<u128>(a >> 13) * (b >> 12 & 0x3FFFFFF) >> 13;
  const u128 lower = static_cast<u128>((a >> 47) * (b & 0xFFF)) << 9;
  return static_cast<uint64_t>((upper + middle + lower) >> (26 + more));
}

inline uint32_t exponent_of(uint32_t x) { return x >> 23 & 0xFF; }
inline uint32_t significand_of(uint32_t x) { return (x & 0x7FFFFF) | 0x800000; }

// Rounds `raw`, whose bit 63 has this biased exponent, to float32, or to an integer where `fixed`.
inline Result rounded(bool negative, int exponent, uint64_t raw, bool fixed) {
  const uint64_t before = raw;
  int zeros = 0;
  for (; zeros < 3 && !(raw >> 63); ++zeros) raw <<= 1;
  exponent -= zeros;
  const bool small = fixed || exponent < 1;
  const int shift = small ? std::min(8 - exponent, 32) : 7;
  const uint32_t window = static_cast<uint32_t>((raw >> 32) >> shift);
  const uint32_t field = small ? 0 : static_cast<uint32_t>(exponent - 1) << 23;
  const uint32_t magnitude = field + (window >> 1) + (window & 1);
  // Without what is kept, the boundary is where the bit that rounds begins.
  const int kept = 33 + shift;
  const uint64_t half = kept > 64 ? ~uint64_t{0} : uint64_t{1} << (kept - 1);
  const uint64_t below = kept >= 64 ? raw : raw & ((half << 1) - 1);
  const uint64_t distance = below > half ? below - half : half - below;
  return {magnitude | static_cast<uint32_t>(negative) << 31, true, before, distance};
}

// 2^f with 63 fraction bits.
inline uint64_t power_of_two(uint64_t f) {
  const uint64_t coarse = kExpCoarse[f >> 58];
  const uint64_t product = coarse + high(coarse, kExpFine[f >> 52 & 63]);
  const uint64_t z = f << 12;
  uint64_t sum = kExpCoefficient[3];
  for (int k = 2; k >= 0; --k) sum = kExpCoefficient[k] + high(sum, z, 12);
  return product + high(product, high(sum, z, 12));
}

struct Power {
  int whole;
  uint64_t fraction;
};

// Integer and fraction of a product's upper bits, or of their complement, which is the negative number.
inline Power split(u128 product, int shift, bool negative) {
  const u128 moved = shift > 127 ? 0 : product >> shift;
  const uint64_t fraction = static_cast<uint64_t>(moved);
  const int whole = static_cast<int>(moved >> 64) & 0xFF;
  return negative ? Power{~whole, ~fraction} : Power{whole, fraction};
}

// A significand of at most 24 bits times log2 e.
inline u128 times_log2e(uint64_t m) {
  return static_cast<u128>(m * kLog2eLow) + (static_cast<u128>(m * kLog2eHigh) << 40);
}

inline Result exp_float(uint32_t x) {
  const uint32_t magnitude = x & 0x7FFFFFFF;
  const bool negative = x >> 31;
  if (magnitude > kInf) return {kNan};
  if (!negative && magnitude >= 0x42B17218) return {kInf};
  if (negative && magnitude >= 0x43000000) return {0};
  if (exponent_of(x) < 101) return {0x3F800000};
  const int shift = 165 - static_cast<int>(exponent_of(x));
  const Power power = split(times_log2e(significand_of(x)), shift, negative);
  return rounded(false, power.whole + 127, power_of_two(power.fraction), false);
}

inline Result exp_fixed(uint32_t x) {
  const int32_t number = static_cast<int32_t>(x);
  if (number >= 681392) return {kFixedMost};
  if (number < -772243) return {0};
  const uint64_t magnitude = number < 0 ? -int64_t{number} : number;
  const Power power = split(times_log2e(magnitude << 4), 35, number < 0);
  return rounded(false, power.whole - 6, power_of_two(power.fraction), true);
}

inline Result gelu(uint32_t x) {
  const uint32_t magnitude = x & 0x7FFFFFFF;
  const bool negative = x >> 31;
  const int exponent = static_cast<int>(exponent_of(x));
  if (magnitude > kInf) return {kNan};
  if (exponent >= 131) return {negative ? 0x80000000 : x};
  if (exponent < 96) {
    const uint32_t half = exponent < 2 ? (magnitude + (!negative & magnitude)) >> 1 : magnitude - 0x800000;
    return {half | static_cast<uint32_t>(negative) << 31};
  }
  const uint64_t m = significand_of(x);
  const uint64_t square = m * m;
  const uint64_t lower = square & 0xFFFFFF, upper = square >> 24;
  const u128 product = times_log2e(lower) + (times_log2e(upper) << 24);
  const Power power = split(product, 316 - 2 * exponent, true);

  const int octave = exponent < 127 ? 0 : exponent - 126;
  const u128 place = static_cast<u128>(m) << (octave ? 47 : exponent - 80);
  const int piece = 64 * octave + static_cast<int>(static_cast<uint64_t>(place >> 64) & 63);
  const uint64_t way = ~static_cast<uint64_t>(place);
  const uint64_t* mills = kMills + 8 * piece;
  uint64_t sum = mills[7];
  for (int k = 6; k >= 0; --k) sum = mills[k] + high(sum, way, 6);

  const int scale = power.whole + 1 - (octave ? octave - 1 : 0);
  uint64_t factor = high(power_of_two(power.fraction), sum);
  if (!negative) factor = ~(scale > -64 ? factor >> -scale : 0);
  return rounded(negative, exponent + (negative ? scale : 0), high(m << 40, factor), false);
}

// 1/sqrt of a significand or an integer, digit by digit: `rest` is 2^S in units of the first digit's
// square. The last of the digits is the one that rounds; `left` is what remains behind it, in digits.
inline uint32_t root_digits(uint64_t x, uint64_t rest, double* left) {
  uint64_t next = x;
  uint32_t root = 0;
  for (int turn = 0; turn < 26; ++turn) {
    // All bits are the digit: a jump would be taken every other time.
    const uint64_t digit = -static_cast<uint64_t>(rest >= next);
    root = root << 1 | (digit & 1);
    rest = (rest - (next & digit)) << 2;
    next = 2 * next - x + (4 * x & digit);
  }
  // (root + left)^2 * x = 2^S
  const double quotient = static_cast<double>(rest) / 4 / static_cast<double>(x);
  *left = quotient / (2.0 * root + quotient / (2.0 * root));
  return root;
}

inline Result rsqrt_float(uint32_t x) {
  const uint32_t magnitude = x & 0x7FFFFFFF;
  if (magnitude == 0) return {kInf};
  if (x == kInf) return {0};
  if (x > kInf) return {kNan};
  int exponent = static_cast<int>(std::max(exponent_of(x), 1u));
  uint64_t m = exponent_of(x) ? significand_of(x) : magnitude;
  for (; !(m >> 23); m <<= 1) --exponent;
  double left;
  const uint32_t root = root_digits(m, uint64_t{1} << (exponent & 1 ? 23 : 22), &left);
  const uint32_t field = static_cast<uint32_t>(378 - exponent) >> 1;
  // The highest of the root is bit 24, and a boundary is at each odd number.
  const double distance = std::ldexp(root & 1 ? left : 1 - left, 39);
  return {(field << 23) + (root >> 1) + (root & 1), true, root, static_cast<uint64_t>(distance)};
}

inline Result rsqrt_fixed(uint32_t x) {
  if (x == 0 || x >> 31) return {kFixedMost};
  double left;
  const uint32_t root = root_digits(x, 1, &left);
  // In units of 2^-63 of the highest bit, as everywhere.
  const int size = 32 - __builtin_clz(root);
  const double distance = std::ldexp(root & 1 ? left : 1 - left, 64 - size);
  return {(root >> 1) + (root & 1), true, root, static_cast<uint64_t>(distance)};
}

}  // namespace datapath
