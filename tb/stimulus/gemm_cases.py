# SPDX-License-Identifier: Apache-2.0
"""Random GEMM instructions: every operand form, requantisation, output and second operand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from golden import formats
from npu.compiler.weight_tiles import plain_bytes
from spec.isa import (
    DEPTHWISE_TAPS,
    GEMM_LINES,
    WORD,
    Flag,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    WeightFormat,
    WeightGroup,
)
from spec.isa.operands import LINE_WORDS, MORE_LINES, up
from tb.stimulus.operand_values import any_shift, factor, full, mixed, stored_factor, stored_factors
from tb.stimulus.random_case import Case, instruction, size
from tb.stimulus.sram_space import Place, Space

A_TYPES = {
    GemmA.INT8: np.int8,
    GemmA.UINT8: np.uint8,
    GemmA.INT16: np.int16,
    GemmA.UINT16: np.uint16,
}
WIDE = (GemmA.INT16, GemmA.UINT16)
SOURCES = (GemmB.ROW_MAJOR, GemmB.TILE, GemmB.STREAM)
"""Where B comes from; the second page of formats is another word for the stream."""
PAGE = 8
"""Formats of a page."""
GROUP_ROWS = {
    WeightGroup.G16: 16,
    WeightGroup.G32: 32,
    WeightGroup.G64: 64,
    WeightGroup.G128: 128,
}
CHANNEL = np.dtype([("bias", "<i4"), ("mult", "<u2"), ("shift", "u1"), ("zero", "u1")])


@dataclass(frozen=True)
class GemmSize:
    """M rows, N columns, K inner length."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class Cut:
    """How rows of A lie in lines.

    Attributes:
        lines: of a row.
        ap: words from row to row, 0 for the natural pitch of the whole row.
        bp: words from line to line.
    """

    lines: int
    ap: int
    bp: int


@dataclass(frozen=True)
class GemmMode:
    """What a GEMM does besides multiplying.

    `b_form` is one of SOURCES; `fmt` and `group` count where that is the stream.
    """

    a_type: GemmA
    b_form: GemmB
    transpose: bool
    requant: bool
    q: GemmQ
    out: GemmOut
    op: GemmOp
    accumulate: bool
    bias: bool
    relu: bool
    table: bool
    argmax: bool = False
    fmt: WeightFormat = WeightFormat.INT8
    group: WeightGroup = WeightGroup.G32
    depthwise: bool = False
    lines: bool = False
    """Rows of A are in lines, where K and the source of B allow it."""

    @property
    def narrow(self) -> bool:
        """Whether B comes from the stream and in another format than int8."""
        return self.b_form == GemmB.STREAM and self.fmt != WeightFormat.INT8


def groups(fmt: WeightFormat, edge: int) -> list[WeightGroup]:
    """Return the groups that a format may have with tiles of this edge."""
    if fmt not in formats.GROUPED:
        return [WeightGroup.G32]
    return [group for group, rows in GROUP_ROWS.items() if rows % edge == 0]


def random_mode(random: np.random.Generator, edge: int, *, depthwise: bool = False) -> GemmMode:
    """Return a legal combination for tiles of this edge; `depthwise`: whether the chip has it."""

    def chance(share: float) -> bool:
        return bool(random.random() < share)

    b_form = SOURCES[int(random.integers(3))]
    fmt = (
        WeightFormat(int(random.integers(len(WeightFormat)))) if chance(0.7) else WeightFormat.INT8
    )
    group = groups(fmt, edge)[int(random.integers(len(groups(fmt, edge))))]
    requant = chance(0.8)
    q = GemmQ(int(random.integers(4))) if requant else GemmQ.PREFIX
    out = GemmOut(int(random.integers(2))) if requant else GemmOut.INT32
    accumulate = chance(0.25)
    op = GemmOp.NONE
    if requant and not accumulate and chance(0.6):
        op = (
            GemmOp.MUL
            if q in (GemmQ.TENSOR, GemmQ.CHANNEL) and out == GemmOut.INT8 and chance(0.7)
            else GemmOp.ADD
        )
    columns = depthwise and b_form == GemmB.STREAM and chance(0.5)
    return GemmMode(
        a_type=GemmA(int(random.integers(2 if columns else 4))),
        b_form=b_form,
        transpose=b_form != GemmB.STREAM and chance(0.5),
        requant=requant,
        q=q,
        out=out,
        op=op,
        accumulate=accumulate,
        bias=q == GemmQ.CHANNEL and requant and chance(0.6),
        relu=requant and chance(0.3),
        table=requant and out == GemmOut.INT8 and chance(0.3),
        fmt=fmt,
        group=group,
        depthwise=columns,
        lines=b_form == GemmB.STREAM and not columns and chance(1 / 3),
    )


def argmax_mode(random: np.random.Generator, edge: int, *, depthwise: bool = False) -> GemmMode:
    """Return a legal combination with argmax, its output written or not."""
    mode = random_mode(random, edge, depthwise=depthwise)
    while not mode.requant:
        mode = random_mode(random, edge, depthwise=depthwise)
    written = random.random() < 0.4
    if mode.out == GemmOut.INT16 and not written:
        mode = replace(mode, out=GemmOut.NONE)
    return replace(mode, argmax=True)


def random_shape(
    random: np.random.Generator, mode: GemmMode, rows: int, edge: int = 16
) -> GemmSize:
    """Return a shape: rows up to what the accumulators hold for this A."""
    most = rows // 2 if mode.a_type in WIDE else rows
    if random.random() < 0.1:
        shape = GemmSize(size(random, 8), size(random, 60), size(random, 700))
    else:
        shape = GemmSize(size(random, most), size(random, 80), size(random, 100))
    return fitting(shape, mode, edge)


def fitting(shape: GemmSize, mode: GemmMode, edge: int) -> GemmSize:
    """Return the shape with an inner length that the mode takes.

    Depthwise that is one to four tiles, of rows in lines as many tiles for each of two to four.
    """
    if mode.depthwise:
        return replace(shape, k=edge * (1 + shape.k % GEMM_LINES))
    if not mode.lines:
        return shape
    lines = 2 + shape.k % (GEMM_LINES - 1)
    tiles = max(shape.k // (lines * edge), 1)
    in_a_word = WORD // np.dtype(A_TYPES[mode.a_type]).itemsize
    return replace(shape, k=lines * tiles * edge - shape.k % in_a_word)


def _beats(
    random: np.random.Generator, mode: GemmMode, shape: GemmSize, edge: int
) -> npt.NDArray[np.uint8]:
    """Return beats of narrow weights, (column tiles, beats, 64): any codes, likely side bytes.

    Whatever no weight takes, in tiles as in side beats, is as random as the rest.
    """
    side = formats.side_beats(mode.fmt, shape.k, edge, GROUP_ROWS[mode.group])
    beats = mixed(random, (up(shape.n, edge) // edge, side.size, formats.BEAT), np.uint8)
    likely = beats[:, side]
    if mode.fmt in formats.MX:
        likely = random.integers(0, 10, likely.shape, np.uint8)
    elif mode.fmt in formats.SPARSE:
        ascending = np.array([4, 8, 12, 9, 13, 14], np.uint8)  # p0 + 4 * p1
        likely = (
            random.choice(ascending, likely.shape) | random.choice(ascending, likely.shape) << 4
        )
    beats[:, side] = np.where(random.random(likely.shape) < 0.8, likely, beats[:, side])
    return beats


def lines_of(shape: GemmSize, mode: GemmMode, edge: int) -> list[int]:
    """Return in how many lines of whole inner tiles rows of A may be."""
    size = np.dtype(A_TYPES[mode.a_type]).itemsize
    words, tile = up(shape.k * size) // WORD, edge * size // WORD
    allowed = mode.lines and mode.b_form == GemmB.STREAM and not mode.depthwise
    return [n for n in range(2, GEMM_LINES + 1) if allowed and words % (n * tile) == 0]


class _Builder:
    """Collects the operands of one GEMM."""

    def __init__(
        self,
        random: np.random.Generator,
        space: Space,
        shape: GemmSize,
        mode: GemmMode,
        edge: int,
        cut: Cut | None = None,
    ) -> None:
        self.random, self.space, self.shape, self.mode, self.edge = random, space, shape, mode, edge
        self.case, self.cut = Case([]), cut
        self.prefix: dict[str, int] = {}
        self.lines = shape.k // edge if mode.depthwise else 0
        products = DEPTHWISE_TAPS * self.lines or shape.k
        self.spread_a = (15000.0 if mode.a_type in WIDE else 60.0) * products**0.5
        self.spread = 60.0 * self.spread_a

    def a(self) -> Place:
        """Place A and give it data."""
        if self.lines:
            return self._image()
        if self.cut:
            return self._lined(self.cut)
        if lines := lines_of(self.shape, self.mode, self.edge):
            return self._lined(self._drawn_cut(int(self.random.choice(lines))))
        dtype = A_TYPES[self.mode.a_type]
        width = self.shape.k * np.dtype(dtype).itemsize
        place = self.space.matrix(self.shape.m, width)
        self.case.fill("A", place, mixed(self.random, (self.shape.m, self.shape.k), dtype))
        self.prefix["ap"] = place.prefix_pitch
        return place

    def _image(self) -> Place:
        """Place A of a depthwise GEMM: all that its lines cover, which may lie over each other."""
        random, rows = self.random, self.shape.m + DEPTHWISE_TAPS - 1
        row = up(self.shape.n) // WORD
        ap = int(random.choice([0, 0, 1, row, row + 1, row + 4]))
        step = ap or row
        bp = int(random.choice([0, 0, 1, step, 2 * step, rows * step, rows * step + 5]))
        words = (rows - 1) * step + (self.lines - 1) * (bp or row) + row
        place = self.space.block(words * WORD)
        self.case.fill("A", place, mixed(random, (1, words * WORD), A_TYPES[self.mode.a_type]))
        self.prefix |= {"ap": ap, "bp": bp}
        return place

    def _drawn_cut(self, lines: int) -> Cut:
        """Draw pitches: lines and rows behind each other, with gaps, or over each other."""
        random, rows = self.random, self.shape.m
        row = up(self.shape.k * np.dtype(A_TYPES[self.mode.a_type]).itemsize) // WORD
        line = row // lines
        ap = int(random.choice([0, 0, 1, line, row + 1]))
        apart = [1, max(line - 1, 1), line, line, line + 3, ap or row]
        if rows * row < 256:
            apart += [rows * (ap or row), rows * row + 5]
        return Cut(lines, ap, int(random.choice(apart)))

    def _lined(self, cut: Cut) -> Place:
        """Place A in lines: all that they cover, also what lies between them."""
        size, dtype = self.shape, A_TYPES[self.mode.a_type]
        element = np.dtype(dtype).itemsize
        row = up(size.k * element) // WORD
        line = row // cut.lines
        words = (size.m - 1) * (cut.ap or row) + (cut.lines - 1) * cut.bp + line
        place = self.space.block(words * WORD)
        self.case.fill("A", place, mixed(self.random, (1, words * WORD // element), dtype))
        given = MORE_LINES.put(cut.lines - 1) | LINE_WORDS.put(line)
        self.prefix |= {"ap": cut.ap, "bp": cut.bp, "lines": given}
        return place

    def b(self) -> int:
        """Place B in SRAM, or keep it for the stream; return its word address or 0."""
        shape, mode = self.shape, self.mode
        if mode.narrow:
            return self._narrow()
        self.weights = mixed(self.random, (shape.k, shape.n), np.int8)
        if mode.b_form == GemmB.STREAM:
            self.case.data["B"] = self.weights
            return 0
        matrix = self.weights.T if mode.transpose else self.weights
        if mode.b_form == GemmB.ROW_MAJOR:
            place = self.space.matrix(matrix.shape[0], matrix.shape[1])
            self.case.fill("B", place, np.ascontiguousarray(matrix))
            self.prefix["bp"] = place.prefix_pitch
            return place.word
        return self._tile_order(np.ascontiguousarray(matrix))

    def _narrow(self) -> int:
        """Draw narrow weights for the stream."""
        (k, n), fmt, rows = (self.shape.k, self.shape.n), self.mode.fmt, GROUP_ROWS[self.mode.group]
        self.beats = _beats(self.random, self.mode, self.shape, self.edge)
        self.weights = formats.expand(fmt, self.beats.tobytes(), k, n, self.edge, rows)
        self.case.data["B"] = self.weights
        self.spread = max(float(np.std(self.weights)), 1.0) * self.spread_a
        return 0

    def _tile_order(self, matrix: npt.NDArray[np.int8]) -> int:
        """Place (positions, lanes) in tile order; what lies past both is random."""
        positions, lanes = matrix.shape
        edge = self.edge
        padded = full(self.random, (up(positions, edge), up(lanes, edge)), np.int8)
        padded[:positions, :lanes] = matrix
        cut = padded.reshape(-1, edge, padded.shape[1] // edge, edge).transpose(0, 2, 1, 3)
        place = self.space.block(padded.size)
        self.case.fill("B", place, np.ascontiguousarray(cut).reshape(1, -1))
        return place.word

    def c(self) -> Place:
        """Place C."""
        if self.mode.out == GemmOut.NONE:
            return Place(0, 0, False, 0, 0)
        bytes_per = {GemmOut.INT8: 1, GemmOut.INT16: 2, GemmOut.INT32: 4}[self.mode.out]
        rows = self.shape.m
        if self.mode.out == GemmOut.INT32 and self.mode.a_type in WIDE:
            rows *= 2
        place = self.space.matrix(rows, self.shape.n * bytes_per)
        self.prefix["cp"] = place.prefix_pitch
        return place

    def d(self, c: Place) -> int:
        """Place the second operand, sometimes over C; return its word address."""
        shape, mode = self.shape, self.mode
        rows = shape.m * (2 if mode.accumulate and mode.a_type in WIDE else 1)
        dtype = (
            np.int32
            if mode.accumulate
            else np.int16
            if mode.out in (GemmOut.INT16, GemmOut.NONE)
            else np.int8
        )
        width = shape.n * np.dtype(dtype).itemsize
        same_form = mode.accumulate == (mode.out == GemmOut.INT32)
        same_form &= mode.out != GemmOut.NONE
        over_c = same_form and self.random.random() < 0.5
        place = c if over_c else self.space.matrix(rows, width)
        if mode.out == GemmOut.NONE and mode.accumulate and place.word == 0:
            place = self.space.matrix(rows, width)  # C counts as lying at 0
        self.prefix["dp"] = place.prefix_pitch
        if mode.accumulate:
            values = mixed(self.random, (rows, shape.n), np.int32)
            if self.random.random() < 0.8:
                values >>= 11  # near the sums, so that both count
        else:
            values = mixed(self.random, (rows, shape.n), dtype)
        self.case.fill("partial sums" if mode.accumulate else "D", place, values)
        return place.word

    def requantise(self) -> None:
        """Choose the factors: prefix operands, sums, or pieces of the share."""
        mode, random = self.mode, self.random
        target = 40.0 if mode.out == GemmOut.INT8 else 9000.0
        if mode.table:
            self.case.data["table"] = full(random, (256,), np.int8)
            self.case.stream += self.case.data["table"].tobytes()
        if mode.requant and mode.q == GemmQ.PREFIX:
            mult, shift = factor(random, self.spread, target)
            self.prefix |= {"mul": mult, "sh": shift}
            self.case.data |= {"mul": np.array([mult], np.uint16), "sh": np.array([shift])}
        if mode.requant and mode.q == GemmQ.TENSOR:
            mult, shift = stored_factor(random, self.spread, target)
            self.case.data["mult"] = np.array([mult], np.uint16)
            self.case.data["shift"] = np.array([shift], np.uint8)
            record = mult.to_bytes(2, "little") + bytes([shift])
            self.case.stream += record + bytes(61)
        if mode.requant and mode.q == GemmQ.ROW:
            self._sums()
        if mode.op == GemmOp.MUL:
            mult, shift = stored_factor(random, 40.0 * 60.0, 40.0)
            self.prefix |= {"mul": mult, "sh": shift & 0x3F}
            self.case.data["mul of MUL"] = np.array([mult], np.uint16)
        self._tiles(target)

    def _sums(self) -> None:
        """Place softmax sums: mostly near what brings the products into range."""
        rows = self.shape.m
        bits = np.log2(self.spread / 40.0)
        wanted = 2.0 ** self.random.uniform(max(bits - 2, 0), max(min(bits + 2, 31.9), 0.1), rows)
        sums = np.minimum(wanted, 2**32 - 1).astype(np.uint32)
        if self.random.random() < 0.1:
            sums = mixed(self.random, (rows,), np.uint32)
        if self.random.random() < 0.1:
            sums[int(self.random.integers(rows))] = 0
        place = self.space.block(rows * WORD)
        words = full(self.random, (rows, 4), np.uint32)
        words[:, 0] = sums
        self.case.fill("sums", place, words.reshape(1, -1))
        self.case.data["sums"] = sums
        self.prefix["sums"] = place.word

    def _tiles(self, target: float) -> None:
        """Append the per-channel records and the weight tiles of each column tile."""
        mode, shape, edge = self.mode, self.shape, self.edge
        count = up(shape.n, edge)
        channels = np.zeros(count, CHANNEL)
        if mode.requant and mode.q == GemmQ.CHANNEL:
            used = slice(0, shape.n)
            mult, shift = stored_factors(self.random, shape.n, self.spread, target)
            channels["mult"][used], channels["shift"][used] = mult, shift
            if self.random.random() < 0.2:
                channels["bias"][used] = mixed(self.random, (shape.n,), np.int32)
            else:
                span = int(self.spread) + 1
                channels["bias"][used] = self.random.integers(-span, span, shape.n)
            self.case.data |= {name: channels[name][used] for name in ("bias", "mult", "shift")}
        plain = plain_bytes(self.weights, edge, WeightFormat.INT8)
        weights = self.beats if mode.narrow else plain
        for tile in range(count // edge):
            if mode.requant and mode.q == GemmQ.CHANNEL:
                self.case.stream += channels[tile * edge : (tile + 1) * edge].tobytes()
            if mode.b_form == GemmB.STREAM:
                self.case.stream += weights[tile].tobytes()


def build(
    random: np.random.Generator,
    space: Space,
    shape: GemmSize,
    mode: GemmMode,
    edge: int = 16,
    cut: Cut | None = None,
) -> Case:
    """Return a GEMM of a given shape and mode with random operands.

    `cut`: how rows of A are in lines, whatever the mode says; drawn if None.
    """
    builder = _Builder(random, space, shape, mode, edge, cut)
    a, source = builder.a(), builder.b()
    c = builder.c()
    has_d = mode.accumulate or mode.op != GemmOp.NONE
    if has_d:
        d = builder.d(c)
        if mode.b_form == GemmB.STREAM:
            source = d
        else:
            builder.prefix["d"] = d
    builder.requantise()
    names = [
        ("MODE", True),
        ("TRANSPOSE_B", mode.transpose or (mode.narrow and bool(mode.group & 1))),
        ("BIAS_EN", mode.bias),
        ("REQUANT", mode.requant),
        ("RELU", mode.relu),
        ("ACCUMULATE", mode.accumulate),
        ("GROUP_HIGH", mode.narrow and bool(mode.group & 2)),
    ]
    case = builder.case
    case.words = instruction(
        Opcode.GEMM,
        flags=[name for name, on in names if on],
        dst=c.word,
        src0=a.word,
        src1=source,
        m=shape.m,
        n=shape.n,
        k=shape.k,
        imm={
            "a_type": mode.a_type,
            "b_form": GemmB.STREAM_MX if mode.narrow and mode.fmt >= PAGE else mode.b_form,
            "fmt": mode.fmt % PAGE if mode.narrow else 0,
            "q": mode.q,
            "activation": int(mode.table),
            "out": mode.out,
            "op": mode.op,
            "argmax": int(mode.argmax),
            "depthwise": int(mode.depthwise),
        },
        prefix=builder.prefix,
        needs_prefix=(has_d and mode.b_form != GemmB.STREAM)
        or (mode.requant and mode.q == GemmQ.ROW),
    )
    return case


def gemm(
    random: np.random.Generator,
    space: Space,
    rows: int = 128,
    edge: int = 16,
    *,
    depthwise: bool = False,
) -> Case:
    """Return a random GEMM with a mode word."""
    mode = random_mode(random, edge, depthwise=depthwise)
    return build(random, space, random_shape(random, mode, rows, edge), mode, edge)


def argmax(
    random: np.random.Generator, space: Space, edge: int = 16, *, depthwise: bool = False
) -> Case:
    """Return a random GEMM of one row with argmax."""
    mode = argmax_mode(random, edge, depthwise=depthwise)
    shape = replace(random_shape(random, mode, 2, edge), m=1)
    return build(random, space, shape, mode, edge)


def classic(random: np.random.Generator, space: Space, rows: int = 128, edge: int = 16) -> Case:
    """Return a random GEMM without a mode word: the original's instruction."""
    requant = bool(random.random() < 0.6)
    accumulate = bool(random.random() < 0.4)
    mode = GemmMode(
        a_type=GemmA.INT8,
        b_form=GemmB.ROW_MAJOR,
        transpose=bool(random.random() < 0.5),
        requant=requant,
        q=GemmQ.ROW if requant else GemmQ.PREFIX,
        out=GemmOut.INT8 if requant else GemmOut.INT32,
        op=GemmOp.NONE,
        accumulate=accumulate,
        bias=False,
        relu=requant and bool(random.random() < 0.3),
        table=False,
    )
    shape = random_shape(random, mode, rows)
    builder = _Builder(random, space, shape, mode, edge)
    a, b, c = builder.a(), builder.b(), builder.c()
    if accumulate:
        builder.prefix["d"] = builder.d(c)
        if builder.prefix["d"] == c.word and not any(
            builder.prefix.get(name) for name in ("ap", "bp", "cp", "dp")
        ):
            builder.prefix = {}  # without a prefix word D is C
    scale = int(mixed(random, (), np.uint8))
    near = round(np.log2(max(builder.spread, 1) * max(scale, 1) / 40)) + random.integers(-2, 3)
    shift = int(np.clip(near, 0, 63)) if random.random() < 0.9 else any_shift(random)
    if requant:
        builder.case.data |= {"scale": np.array([scale], np.uint8), "shift": np.array([shift])}
    flags = 0
    for flag, on in (
        (Flag.TRANSPOSE_B, mode.transpose),
        (Flag.REQUANT, requant),
        (Flag.RELU, mode.relu),
        (Flag.ACCUMULATE, accumulate),
    ):
        flags |= on << flag
    prefix = instruction(Opcode.GEMM, prefix=builder.prefix, needs_prefix="d" in builder.prefix)[
        :-1
    ]
    word = Instruction(
        Opcode.GEMM,
        flags=flags,
        dst=c.word,
        src0=a.word,
        src1=b,
        m=shape.m,
        n=shape.n,
        k=shape.k,
        imm=scale | shift << 8 if requant else 0,
    )
    builder.case.words = [*prefix, word]
    return builder.case
