# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the coprocessor's exp and GELU from their formulas, in integers.

    2^f      = 2^(i/64) * 2^(j/4096) * 2^r, of which the last factor is a polynomial in r < 2^-12
    M(u)     = erfcx(u / sqrt 2) / 2 = Phi(-u) * exp(u^2 / 2), Mills' ratio over sqrt(2 pi)
    log2(e)  = 1 / ln 2

M solves M' = u * M - 1 / sqrt(2 pi), M(0) = 1/2, from which the coefficients of its Taylor series
at any place follow. The series is taken at the right end of each piece, in steps to the left:
there all its coefficients are positive. Chebyshev polynomials then take the higher powers away
(C. W. Clenshaw, Mathematical Tables vol. 5, 1962: economisation of power series).
"""

from __future__ import annotations

from functools import cache
from math import factorial, isqrt

FRACTION = 64
"""Fraction bits of the tables."""
LOG2E_FRACTION = 79
EXP_DEGREE = 4
PIECES, OCTAVES = 64, 5
"""Pieces of equal length below 1, and as many in each octave from 1 to 16."""
DEGREE = 7
STEP_BITS = 6
"""The coefficient of w^k is kept times 2^(6k): w is at most 1, in units of a piece of 1/64."""

_BITS = 700
"""Fraction bits of what is computed; up to 16 the equation magnifies errors by e^128."""
_ONE = 1 << _BITS
_TERMS = 90
"""Of the Taylor series from one end of a piece to the other; the last one is below 2^-300."""
_SERIES = 18
"""Terms of which a piece's polynomial is made."""


def ln2(bits: int = _BITS) -> int:
    """Return floor(2^bits * ln 2), by ln 2 = 2 * artanh(1/3)."""
    guard = bits + 32
    power, total, n = (2 << guard) // 3, 0, 1
    while power:
        total += power // n
        power //= 9
        n += 2
    return total >> 32


def log2e() -> int:
    """Return floor(2^79 * log2 e)."""
    return (1 << (LOG2E_FRACTION + _BITS)) // ln2()


def _powers_of_two(bits: int) -> list[int]:
    """Return floor(2^64 * 2^(i / 2^bits)) for i = 0 to 63, of a root with 256 fraction bits."""
    root = 2 << 256
    for _ in range(bits):
        root = isqrt(root << 256)
    powers = [1 << 256]
    for _ in range(63):
        powers.append(powers[-1] * root >> 256)
    return [power >> (256 - FRACTION) for power in powers]


def exp_coarse() -> list[int]:
    """Return floor(2^63 * 2^(i/64)): from 1 on, 63 fraction bits."""
    return [power >> 1 for power in _powers_of_two(6)]


def exp_fine() -> list[int]:
    """Return floor(2^64 * (2^(j/4096) - 1))."""
    return [power - (1 << FRACTION) for power in _powers_of_two(12)]


def exp_coefficients() -> list[int]:
    """Return floor(2^64 * ln(2)^k / k!) for k = 1 to 4."""
    coefficients, power = [], _ONE
    for k in range(1, EXP_DEGREE + 1):
        power = power * ln2() >> _BITS
        coefficients.append(power // factorial(k) >> (_BITS - FRACTION))
    return coefficients


def _inverse_root_two_pi() -> int:
    """Return 2^700 / sqrt(2 pi); pi by Machin's formula."""
    guard = _BITS + 64

    def arctan_inverse(n: int) -> int:
        power, total, k = (1 << guard) // n, 0, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power //= n * n
            k += 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (1 << (_BITS + guard)) // isqrt(2 * pi << guard)


def _series(u: int, value: int, terms: int) -> list[int]:
    """Return Taylor coefficients of M at `u`, all with 700 fraction bits."""
    series = [value, (u * value >> _BITS) - _inverse_root()]
    for n in range(1, terms - 1):
        series.append(((u * series[n] >> _BITS) + series[n - 1]) // (n + 1))
    return series


@cache
def _inverse_root() -> int:
    return _inverse_root_two_pi()


@cache
def _shifted_chebyshev(n: int) -> list[int]:
    """Return the coefficients of T_n(2w - 1)."""
    before, this = [1], [-1, 2]
    for _ in range(n - 1):
        following = [0] * (len(this) + 1)
        for k, c in enumerate(this):
            following[k] -= 2 * c
            following[k + 1] += 4 * c
        for k, c in enumerate(before):
            following[k] -= c
        before, this = this, following
    return this


def _economised(series: list[int]) -> list[int]:
    """Return a polynomial of degree 7 that is near a longer one for w from 0 to 1."""
    series = list(series)
    for n in range(len(series) - 1, DEGREE, -1):
        chebyshev = _shifted_chebyshev(n)
        for k in range(n):
            series[k] -= series[n] * chebyshev[k] // chebyshev[n]
    return series[: DEGREE + 1]


@cache
def mills() -> list[list[int]]:
    """Return for each piece 2^64 times the coefficients of 2^octave * M in w^0, w^1 ... w^7.

    w is the way from the right end of the piece in units of its length; the coefficient of w^k is
    times 2^(6k). The lowest bits of all but the first one are zero: each has two bits more than w^k
    lets count.
    """
    pieces = []
    u, value = 0, _ONE // 2
    for octave in range(OCTAVES):
        doubled = max(octave - 1, 0)
        length = (_ONE >> STEP_BITS) << doubled
        for _ in range(PIECES):
            total = 0
            for coefficient in reversed(_series(u, value, _TERMS)):
                total = coefficient + (total * length >> _BITS)
            u, value = u + length, total
            scaled, power = [], _ONE << doubled
            for n, coefficient in enumerate(_series(u, value, _SERIES)):
                scaled.append((coefficient * power >> _BITS) * (-1) ** n)
                power = power * length >> _BITS
            pieces.append([_kept(k, c) for k, c in enumerate(_economised(scaled))])
    return pieces


def mills_width(k: int) -> int:
    """Return the bits that the coefficient of w^k has."""
    return 66 - STEP_BITS * k if k else 63


def _kept(k: int, coefficient: int) -> int:
    """Return a coefficient with 64 fraction bits, rounded to those that it has."""
    if k == 0:
        return coefficient >> (_BITS - FRACTION)
    zeros = FRACTION - mills_width(k)
    shift = _BITS - FRACTION - STEP_BITS * k + zeros
    return ((coefficient >> (shift - 1)) + 1 >> 1) << zeros


def _table(name: str, comment: str, width: int, numbers: list[int]) -> list[str]:
    digits = -(-width // 4)
    rows = [
        "    " + ", ".join(f"{width}'h{number:0{digits}x}" for number in numbers[at : at + 4])
        for at in range(0, len(numbers), 4)
    ]
    head = f"  localparam logic [{width - 1}:0] {name}[{len(numbers)}] = '{{"
    return [f"  // {comment}", head, ",\n".join(rows), "  };", ""]


def emit() -> str:
    """Return the SystemVerilog package npu_cop_tables_pkg."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        "// Tables of the coprocessor's exp and GELU.",
        "// Generated by spec/isa/emit_cop_tables.py; do not edit.",
        "",
        "package npu_cop_tables_pkg;",
        "",
        f"  // log2(e) with {LOG2E_FRACTION} fraction bits",
        f"  localparam logic [79:0] Log2e = 80'h{log2e():020x};",
        "",
        *_table("ExpCoarse", "2^(i/64) with 63 fraction bits", 64, exp_coarse()),
        *_table("ExpFine", "2^(j/4096) - 1 with 64 fraction bits", 58, exp_fine()),
        *_table(
            "ExpCoefficient",
            "ln(2)^k / k! for k = 1 to 4 with 64 fraction bits",
            64,
            exp_coefficients(),
        ),
    ]
    for k in range(DEGREE + 1):
        fraction = mills_width(k) if k else FRACTION
        lines += _table(
            f"Mills{k}",
            f"Coefficients of w^{k} times 2^{STEP_BITS * k} with {fraction} fraction bits",
            mills_width(k),
            [piece[k] >> (FRACTION - fraction) for piece in mills()],
        )
    return "\n".join([*lines, "endpackage", ""])


def _c_table(name: str, numbers: list[int]) -> str:
    body = ",\n".join(f"    UINT64_C({number:#x})" for number in numbers)
    return f"constexpr uint64_t {name}[{len(numbers)}] = {{\n{body}}};\n"


def emit_c() -> str:
    """Return the same tables as a C++ header, all with 64 fraction bits but `kExpCoarse`."""
    flat = [coefficient for piece in mills() for coefficient in piece]
    return "\n".join(
        [
            "// SPDX-License-Identifier: Apache-2.0",
            "// Generated by spec/isa/emit_cop_tables.py; do not edit.",
            "#pragma once",
            "#include <cstdint>",
            f"constexpr uint64_t kLog2eHigh = {log2e() >> 40:#x}, "
            f"kLog2eLow = {log2e() & ((1 << 40) - 1):#x};",
            _c_table("kExpCoarse", exp_coarse()),
            _c_table("kExpFine", exp_fine()),
            _c_table("kExpCoefficient", exp_coefficients()),
            _c_table("kMills", flat),
        ]
    )
