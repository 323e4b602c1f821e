# SPDX-License-Identifier: Apache-2.0
"""A in lines on the instruction-level model, against integer arithmetic over gathered rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.machine import ChipConfig, RunResult
from spec.isa import ErrorCode, GemmA, Instruction, Opcode, WeightFormat
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_support import integers, seeded
from tests.python.weights.packed_weights import Packer, expected, random_cells

A, C, D = 0x40, 0x18000, 0x30000
"""Byte addresses of the operands."""
DTYPES: dict[GemmA, type[np.integer[Any]]] = {
    gp.A_INT8: np.int8,
    gp.A_UINT8: np.uint8,
    gp.A_INT16: np.int16,
    gp.A_UINT16: np.uint16,
}
PLAIN = gp.OUT_INT32 | gp.B_STREAM
CHIPS = [8, 16, 32]
FIELD, DIMENSION = ErrorCode.ILLEGAL_FIELD, ErrorCode.BAD_DIMENSION


@dataclass(frozen=True)
class Cut:
    """A in lines: how many, and in words how long, how far apart, and from row to row."""

    lines: int
    words: int
    bp: int
    ap: int = 0

    def prefix(self, **fields: int) -> Instruction:
        """Return the prefix word."""
        return gp.pfx(ap=self.ap, bp=self.bp, d=cut_field(self.lines, self.words), **fields)

    def rows(
        self, sram: npt.NDArray[np.uint8], m: int, k: int, dtype: type[np.integer[Any]] = np.int8
    ) -> npt.NDArray[np.int64]:
        """Return A (M, K), each element fetched by itself; the natural pitch is all lines."""
        size, line = np.dtype(dtype).itemsize, 16 * self.words
        pitch = 16 * (self.ap or self.lines * self.words)
        row, byte = np.arange(m)[:, None], np.arange(k) * size
        at = A + row * pitch + byte // line * 16 * self.bp + byte % line
        raw = np.stack([sram[at + part] for part in range(size)], axis=-1)
        return raw.view(np.dtype(dtype).newbyteorder("<"))[..., 0].astype(np.int64)


def cut_field(lines: int, words: int) -> int:
    """Return the prefix field of a number of lines, 1 to 4, and the words of a line."""
    return lines - 1 << 14 | words


def share(weights: npt.NDArray[np.int8], edge: int = 16) -> bytes:
    """Return the weight tiles of every column tile."""
    return b"".join(b"".join(column) for column in gp.weight_tiles(weights, edge))


def bench(words: list[Instruction], stream: bytes, edge: int = 16, pos: int = 0) -> gp.ProgramBench:
    """Return a program on an SRAM full of random bytes."""
    made = gp.ProgramBench([*words, gp.END], stream, ChipConfig(array_dim=edge), pos=pos)
    made.sram[:] = seeded(760).integers(0, 256, made.sram.size)
    return made


def finished(made: gp.ProgramBench) -> RunResult:
    """Run a program that has neither errors nor races."""
    result = made.run()
    assert result.error is None
    assert result.races == []
    return result


def product(made: gp.ProgramBench, m: int, n: int, passes: int) -> npt.NDArray[np.int64]:
    """Return the int32 output, the two planes of a 16-bit A as one number."""
    planes = made.get(C, (passes * m, n), np.int32).astype(np.int64)
    return planes if passes == 1 else (planes[:m] << 8) + planes[m:]


@pytest.mark.parametrize("edge", CHIPS)
@pytest.mark.parametrize("a_type", DTYPES)
@pytest.mark.parametrize("lines", [2, 3, 4])
def test_products_are_exact(edge: int, a_type: GemmA, lines: int) -> None:
    """Rows at their natural pitch, overlapping and apart; lines that overlap, touch, lie apart."""
    dtype = DTYPES[a_type]
    rng, m, n = seeded(761), 5, 20
    passes = np.dtype(dtype).itemsize
    inner = max(edge, 16) * passes // 16
    for words in (inner, 3 * inner):
        whole = lines * words * 16 // passes
        for k in (whole, whole - 1, whole - 16 // passes + 1):
            weights = integers(rng, np.int8, (k, n))
            for ap in (0, 1, words - 1 or 1, lines * words + 1):
                for bp in (1, words - 1 or 1, words, words + 5, 100):
                    cut = Cut(lines, words, bp, ap)
                    word = gp.gemm(C >> 4, A >> 4, 0, m, n, k, PLAIN | a_type)
                    made = bench([cut.prefix(), word], share(weights, max(edge, 16)), edge)
                    exact = cut.rows(made.sram, m, k, dtype) @ weights.astype(np.int64)
                    assert finished(made).macs == passes * m * n * k
                    assert np.array_equal(product(made, m, n, passes), exact)


def test_the_row_is_its_lines_one_behind_the_other() -> None:
    """Lines that touch are the rows of a GEMM without lines."""
    weights = integers(seeded(762), np.int8, (90, 33))
    word = gp.gemm(C >> 4, A >> 4, 0, 7, 33, 90, PLAIN)
    whole = bench([word], share(weights))
    lined = bench([Cut(3, 2, 2).prefix(), word], share(weights))
    finished(whole)
    finished(lined)
    assert np.array_equal(whole.sram, lined.sram)


@pytest.mark.parametrize(("channels", "edge"), [(16, 16), (48, 16), (32, 32)])
def test_a_convolution_of_all_pixels(channels: int, edge: int) -> None:
    """3 x 3 over an image with its border in one instruction; the ends of lines are no windows."""
    rng, height, width, outputs = seeded(763), 4, 5, 6
    image = integers(rng, np.int8, (height + 2, width + 2, channels))
    filters = integers(rng, np.int8, (3, 3, channels, outputs))
    pixel, m = channels // 16, (height - 1) * (width + 2) + width
    cut = Cut(3, 3 * pixel, (width + 2) * pixel, pixel)
    word = gp.gemm(C >> 4, A >> 4, 0, m, outputs, 9 * channels, PLAIN)
    made = bench([cut.prefix(), word], share(filters.reshape(-1, outputs), edge), edge)
    made.put(A, image.reshape(1, -1))
    finished(made)
    found = made.get(C, (m, outputs), np.int32)
    for y in range(height):
        for x in range(width):
            window = image[y : y + 3, x : x + 3].astype(np.int64)
            assert found[y * (width + 2) + x].tolist() == convolved(window, filters)


def test_a_convolution_of_every_other_pixel() -> None:
    """3 x 3 in steps of two: an instruction per line, the windows two pixels apart."""
    rng, height, width, outputs = seeded(764), 3, 4, 5
    image = integers(rng, np.uint8, (2 * height + 1, 2 * width + 1, 16))
    filters = integers(rng, np.int8, (3, 3, 16, outputs))
    line, words = 2 * width + 1, []
    for y in range(height):
        dst, src = (C >> 4) + y * width * 2, (A >> 4) + 2 * y * line
        words.append(Cut(3, 3, line, 2).prefix())
        words.append(gp.gemm(dst, src, 0, width, outputs, 144, PLAIN | gp.A_UINT8))
    made = bench(words, height * share(filters.reshape(-1, outputs)))
    made.put(A, image.reshape(1, -1))
    finished(made)
    found = made.get(C, (height * width, outputs), np.int32)
    for y in range(height):
        for x in range(width):
            window = image[2 * y : 2 * y + 3, 2 * x : 2 * x + 3].astype(np.int64)
            assert found[y * width + x].tolist() == convolved(window, filters)


def convolved(window: npt.NDArray[np.int64], filters: npt.NDArray[np.int8]) -> list[int]:
    """Return the sums of one window (3, 3, channels), one for each filter, by plain loops."""
    pixels, weights = window.tolist(), filters.tolist()
    sums = [0] * filters.shape[3]
    for pixel_row, weight_row in zip(pixels, weights, strict=True):
        for pixel, taps in zip(pixel_row, weight_row, strict=True):
            for value, outputs in zip(pixel, taps, strict=True):
                sums = [s + value * weight for s, weight in zip(sums, outputs, strict=True)]
    return sums


@pytest.mark.parametrize("a_type", [gp.A_INT8, gp.A_INT16])
@pytest.mark.parametrize(
    ("fmt", "group"),
    [
        (WeightFormat.INT4, 32),
        (WeightFormat.INT4G, 32),
        (WeightFormat.INT4G, 64),
        (WeightFormat.MXFP4, 32),
    ],
)
def test_narrow_weights(a_type: GemmA, fmt: WeightFormat, group: int) -> None:
    """Both pages of formats; lines end within a group."""
    rng, dtype, k = seeded(765), DTYPES[a_type], 140
    passes = np.dtype(dtype).itemsize
    cells = random_cells(rng, fmt, k, 20, group)
    weights = np.array(expected(fmt, cells, k, 20, group), np.int64)
    page = gp.B_STREAM_MX if fmt >= WeightFormat.MXINT8 else gp.B_STREAM
    word = gp.gemm(
        C >> 4,
        A >> 4,
        0,
        6,
        20,
        k,
        gp.OUT_INT32 | page | (fmt & 7) << 4 | a_type,
        int(group == 64),
    )
    cut = Cut(3, 3 * passes, 11, 2)
    made = bench([cut.prefix(), word], Packer(fmt, cells, 16, group).share(k, 20))
    exact = cut.rows(made.sram, 6, k, dtype) @ weights
    finished(made)
    assert np.array_equal(product(made, 6, 20, passes), exact)


def test_partial_sums_at_a_pitch() -> None:
    """D is where it is without lines, at src1 and the prefix's pitch of D."""
    rng = seeded(766)
    weights, before = integers(rng, np.int8, (64, 10)), rng.integers(-(1 << 30), 1 << 30, (5, 10))
    cut = Cut(4, 1, 9, 1)
    word = gp.gemm(C >> 4, A >> 4, D >> 4, 5, 10, 64, PLAIN, gp.ACCUMULATE)
    made = bench([cut.prefix(dp=5), word], share(weights))
    made.put(D, before.astype(np.int32), 80)
    exact = cut.rows(made.sram, 5, 64) @ weights.astype(np.int64) + before
    finished(made)
    assert np.array_equal(made.get(C, (5, 10), np.int32), exact)


def test_the_chain_behind_the_sums() -> None:
    """Multiplier and shift of the prefix, ReLU, then D is added; C at its own pitch."""
    rng, m, n, k = seeded(767), 6, 21, 96
    weights, d = integers(rng, np.int8, (k, n)), integers(rng, np.int8, (m, n))
    cut = Cut(2, 3, 20, 1)
    mode = gp.B_STREAM | gp.Q_PREFIX | gp.OP_ADD
    word = gp.gemm(C >> 4, A >> 4, D >> 4, m, n, k, mode, gp.REQUANT | gp.RELU)
    made = bench([cut.prefix(cp=3, imm=3, sh=11), word], share(weights))
    made.put(D, d)
    sums = cut.rows(made.sram, m, k) @ weights.astype(np.int64)
    exact = np.clip((3 * sums + (1 << 10)) >> 11, 0, 127) + d
    finished(made)
    assert np.array_equal(made.get(C, (m, n), np.int8, 48), np.clip(exact, -128, 127))


def test_argmax_of_one_row() -> None:
    """The best column of a row without output, stored by ARGMAX."""
    weights = integers(seeded(768), np.int8, (64, 50))
    mode = gp.B_STREAM | gp.Q_PREFIX | gp.OUT_NONE | gp.ARGMAX
    word = gp.gemm(0, A >> 4, 0, 1, 50, 64, mode, gp.REQUANT)
    cut = Cut(2, 2, 7)
    made = bench([cut.prefix(imm=1, sh=5), word, Instruction(Opcode.ARGMAX)], share(weights))
    sums = (cut.rows(made.sram, 1, 64) @ weights.astype(np.int64))[0]
    finished(made)
    found = int(made.memory[made.bases[0] :][:4].view("<u4")[0])
    assert found == int(np.argmax(np.clip((sums + 16) >> 5, -32768, 32767)))


@pytest.mark.parametrize(("pos", "m"), [(0, 1), (8, 9), (31, 32), (500, 32)])
def test_dynamic_rows(pos: int, m: int) -> None:
    """As many rows as there are keys, at most the cap; nothing else is written."""
    weights = integers(seeded(769), np.int8, (48, 18))
    cut = Cut(3, 1, 40, 1)
    word = gp.gemm(C >> 4, A >> 4, 0, gp.length(32), 18, 48, PLAIN)
    made = bench([cut.prefix(), word], share(weights), pos=pos)
    before = made.sram.copy()
    exact = cut.rows(before, m, 48) @ weights.astype(np.int64)
    assert finished(made).macs == m * 18 * 48
    assert np.array_equal(made.get(C, (m, 18), np.int32), exact)
    after = C + m * 80
    assert np.array_equal(made.sram[after:], before[after:])


def test_no_rows() -> None:
    """A dynamic M of zero takes the share and does nothing."""
    word = gp.gemm(C >> 4, A >> 4, 0, gp.length(32, v=1), 18, 48, PLAIN)
    made = bench([Cut(3, 1, 40, 1).prefix(), word], bytes(1536))
    before = made.sram.copy()
    result = finished(made)
    assert (result.macs, result.stream_offset) == (0, 1536)
    assert np.array_equal(made.sram, before)


@pytest.mark.parametrize(
    ("word", "kind"),
    [(0xFF, ""), (0x100, "RAW"), (0x103, "RAW"), (0x104, ""), (0x113, ""), (0x114, "RAW")],
)
def test_races_in_every_line(word: int, kind: str) -> None:
    """A load into a line races; between the lines it does not."""
    load = Instruction(Opcode.DMA_LOAD, 0, word, m=1, n=16)
    product_word = gp.gemm(0x800, 0x100, 0, 3, 16, 64, PLAIN)
    made = gp.ProgramBench([load, Cut(2, 2, 20, 1).prefix(), product_word, gp.END], bytes(1024))
    assert [race.kind for race in made.run().races] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("dst", "meets"), [(0x100, True), (0x104, False), (0x111, False), (0x112, True), (0x118, False)]
)
def test_output_on_a_line(dst: int, meets: bool) -> None:
    """C on a line of A disturbs itself; C between and behind the lines does not."""
    product_word = gp.gemm(dst, 0x100, 0, 3, 4, 64, PLAIN)
    made = gp.ProgramBench([Cut(2, 2, 20, 1).prefix(), product_word, gp.END], bytes(1024))
    assert [race.kind for race in made.run().races] == (["SELF"] if meets else [])


def outcome(prefix: Instruction, word: Instruction, edge: int = 16) -> tuple[ErrorCode, int] | None:
    """Return code and address of the error of a pair, which then writes nothing, or None."""
    made = bench([prefix, word], bytes(1 << 15), edge)
    made.program[-1:] = [gp.set_register(3, 0), gp.END]
    before = made.sram.copy()
    result = made.run(races=False)
    if result.error is None:
        return None
    assert result.error.instr == 1
    assert np.array_equal(made.sram, before)
    return result.error.code, result.error.address


def lined(k: int, mode: int = PLAIN, flags: int = 0, m: int = 3) -> Instruction:
    """Return a GEMM of 16 columns."""
    return gp.gemm(C >> 4, A >> 4, 0, m, 16, k, mode, flags)


@pytest.mark.parametrize(
    ("prefix", "word", "error"),
    [
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(32), None),
        (gp.pfx(bp=9, d=cut_field(4, 4)), lined(256), None),
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(32, gp.OUT_INT32 | gp.B_STREAM_MX), None),
        (gp.pfx(), lined(32), None),
        # B is not the stream
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(32, gp.OUT_INT32), FIELD),
        (gp.pfx(d=cut_field(2, 1)), lined(32, gp.OUT_INT32 | gp.B_TILES), FIELD),
        (gp.pfx(d=cut_field(2, 1)), gp.gemm(0x1800, 4, 0, 3, 16, 32), FIELD),
        # depthwise
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(32, PLAIN | gp.DEPTHWISE), FIELD),
        # one line
        (gp.pfx(bp=9, d=cut_field(1, 2)), lined(32), FIELD),
        (gp.pfx(bp=9, d=cut_field(1, 1)), lined(16), FIELD),
        # lines without their pitch, the pitch without lines
        (gp.pfx(d=cut_field(2, 1)), lined(32), FIELD),
        (gp.pfx(bp=9), lined(32), FIELD),
        # with D at src1 the field is no address either
        (gp.pfx(bp=9, d=0x100), lined(32, flags=gp.ACCUMULATE), FIELD),
        # not all of the row, more than it, nothing
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(16), DIMENSION),
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(33), DIMENSION),
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(17), None),
        (gp.pfx(bp=9, d=cut_field(3, 2)), lined(80), DIMENSION),
        (gp.pfx(bp=9, d=cut_field(3, 2)), lined(81), None),
        (gp.pfx(bp=9, d=cut_field(2, 0)), lined(32), DIMENSION),
        (gp.pfx(bp=9, d=cut_field(4, 0x3FFF)), lined(64), DIMENSION),
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(0xF002), DIMENSION),
        # a field is refused before a dimension
        (gp.pfx(d=cut_field(2, 1)), lined(0), FIELD),
        (gp.pfx(bp=9, d=cut_field(2, 1)), lined(32, m=0), DIMENSION),
    ],
)
def test_what_is_refused(prefix: Instruction, word: Instruction, error: ErrorCode | None) -> None:
    """Lines without a stream, one line, lines without bp; lines that are not the row."""
    assert outcome(prefix, word) == (error and (error, 0))


@pytest.mark.parametrize(
    ("edge", "a_type", "words"),
    [
        (8, gp.A_INT8, 1),
        (16, gp.A_INT8, 1),
        (16, gp.A_UINT16, 2),
        (32, gp.A_UINT8, 2),
        (32, gp.A_INT16, 4),
    ],
)
def test_lines_are_whole_inner_tiles(edge: int, a_type: GemmA, words: int) -> None:
    """Of E elements of A, as wide as they are."""
    per_word = 8 if a_type in (gp.A_INT16, gp.A_UINT16) else 16
    for line in range(1, 9):
        for lines in (2, 3, 4):
            prefix = gp.pfx(bp=9, d=cut_field(lines, line))
            found = outcome(prefix, lined(lines * line * per_word, PLAIN | a_type), edge)
            assert found == (None if line % words == 0 else (DIMENSION, 0))


@pytest.mark.parametrize(
    ("m", "cut", "k", "mode"),
    [
        (3, Cut(2, 1, 9), 32, PLAIN),
        (3, Cut(2, 2, 1, 5), 50, PLAIN),
        (4, Cut(4, 3, 30, 1), 190, PLAIN),
        (1, Cut(3, 2, 7, 100), 48, PLAIN | gp.A_INT16),
        (0xF801, Cut(3, 1, 50, 2), 48, PLAIN),
    ],
)
def test_footprint(m: int, cut: Cut, k: int, mode: int) -> None:
    """The last line of the last row ends with the SRAM, or a word behind it; the cap counts."""
    rows = 16 if m == 0xF801 else m
    pitch = cut.ap or cut.lines * cut.words
    size = (rows - 1) * pitch + (cut.lines - 1) * cut.bp + cut.words
    first = 0x4000 - size
    for at, error in ((first, None), (first + 1, (ErrorCode.SRAM_RANGE, 16 * first + 16))):
        assert outcome(cut.prefix(), gp.gemm(C >> 4, at, 0, m, 16, k, mode)) == error
