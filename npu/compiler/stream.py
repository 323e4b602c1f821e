# SPDX-License-Identifier: Apache-2.0
"""The parameter stream: shares in the order in which instructions consume them.

Layouts: docs/reference/isa.md, "Shares of the stream". Every piece is a multiple of 64 bytes.
"""

from dataclasses import dataclass, field
from io import BytesIO
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npu.compiler.errors import CompileError
from npu.compiler.weight_tiles import fewest_bits, format_of, plain_bytes, weight_bytes
from npu.image import PIECE, StreamShare
from spec.isa.generated import Opcode, WeightFormat
from spec.isa.operands import TABLE_BYTES, Limits, up
from spec.isa.weight_formats import GROUPED
from weights.formats.codes import CodedWeights, codes_of
from weights.formats.recipe import INT8, Encoding
from weights.model import AnyLinear, Norm

PLAIN = ("", "")
"""The form of weights of int8."""
_CHANNEL = np.dtype([("bias", "<i4"), ("mult", "<u2"), ("shift", "u1"), ("zero", "u1")])
_NORM = np.dtype([("gain", "<u2"), ("shift", "u1"), ("bias", "i1")])


class ShareData(NamedTuple):
    """A share before it has a place: what takes it, its bytes, the form of its weights."""

    opcode: int
    data: bytes
    form: tuple[str, str] = PLAIN


@dataclass
class StreamWriter:
    """A stream under construction."""

    shares: list[StreamShare] = field(default_factory=list)
    _data: BytesIO = field(default_factory=BytesIO)

    def append(
        self, name: str, opcode: int, data: bytes, form: tuple[str, str] = PLAIN
    ) -> StreamShare:
        """Add the share of the next consumer, with the form of its weights (`form_of`).

        Raises ValueError unless it is whole pieces.
        """
        if not data or len(data) % PIECE:
            raise ValueError(f"share {name}: given {len(data)} bytes, allowed multiples of {PIECE}")
        share = StreamShare(name, opcode, self.size, len(data), *form)
        self.shares.append(share)
        self._data.write(data)
        return share

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._data.tell()

    def image(self) -> bytes:
        """Return the whole stream, which is not copied."""
        return self._data.getvalue()


def form_of(layer: AnyLinear | CodedWeights) -> tuple[str, str]:
    """Return format and group of weights as the text of a GEMM names them."""
    fmt, group = format_of(layer)
    return _name(fmt), group.asm if fmt in GROUPED else ""


def refused_format(fmt: str, group: str, limits: Limits) -> str:
    """Return why a chip cannot expand a format and group as a GEMM's text names them, or ""."""
    if fmt and not limits.narrow_formats:
        return f"given weights in {fmt}, allowed int8: the chip has no narrow formats"
    if group and int(group) < limits.edge:
        allowed = f"allowed at least {limits.edge}, the tile edge"
        return f"given {fmt} with groups of {group}, {allowed}"
    return ""


def _name(fmt: WeightFormat) -> str:
    return "" if fmt == WeightFormat.INT8 else fmt.asm


@dataclass(frozen=True, slots=True)
class Channels:
    """Bias and requantisation of the columns of a product: (N,) int32, uint16 and uint8."""

    bias: npt.NDArray[np.int32]
    mult: npt.NDArray[np.uint16]
    shift: npt.NDArray[np.uint8]

    def records(self, edge: int) -> npt.NDArray[np.uint8]:
        """Return them as the stream has them: (n-tiles, bytes)."""
        columns = self.bias.shape[0]
        channels = np.zeros(up(columns, edge), _CHANNEL)
        channels["bias"][:columns] = self.bias
        channels["mult"][:columns] = self.mult
        channels["shift"][:columns] = self.shift
        return channels.view(np.uint8).reshape(-1, 8 * edge)


def gemm_share(
    layer: AnyLinear, edge: int = 16, table: npt.NDArray[np.int8] | None = None
) -> bytes:
    """Return the share of a GEMM with B = stream and q = ch, and an activation table if given."""
    channels = Channels(layer.bias, layer.mult, layer.shift)
    return _gemm_share([channels.records(edge), weight_bytes(layer, edge)], table)


def product_share(
    edge: int,
    weight: npt.NDArray[np.int8] | None,
    channels: Channels | None,
    table: npt.NDArray[np.int8] | None = None,
    fmt: WeightFormat = WeightFormat.INT8,
) -> bytes:
    """Return the share of a GEMM: weights (K, N) if B is the stream, channels with q = ch."""
    parts = [] if channels is None else [channels.records(edge)]
    if weight is not None:
        parts.append(plain_bytes(weight, edge, fmt))
    return _gemm_share(parts, table)


def weight_share(
    where: str,
    limits: Limits,
    weight: npt.NDArray[np.int8],
    channels: Channels | None,
    table: npt.NDArray[np.int8] | None,
    encoding: Encoding = INT8,
) -> ShareData:
    """Return the share of a GEMM with given weights, in the fewest bits that hold them as they are.

    Weights of two and of four bits, as files may have them, take a quarter and half of the bus.
    Those that were rounded to a narrow format lie in it.

    Raises:
        CompileError: they are not in that format; naming the product.
    """
    if encoding != INT8:
        coded = codes_of(encoding, weight)
        if coded is None:
            raise CompileError(f"{where}: its rows hold other weights than {encoding} has")
        parts = [] if channels is None else [channels.records(limits.edge)]
        data = _gemm_share([*parts, weight_bytes(coded, limits.edge)], table)
        return ShareData(Opcode.GEMM, data, form_of(coded))
    fmt = fewest_bits(weight) if limits.narrow_formats else WeightFormat.INT8
    data = product_share(limits.edge, weight, channels, table, fmt)
    return ShareData(Opcode.GEMM, data, (_name(fmt), ""))


def _gemm_share(parts: list[npt.NDArray[np.uint8]], table: npt.NDArray[np.int8] | None) -> bytes:
    """Return what each n-tile takes, n-tile behind n-tile, with a table in front if given."""
    body = np.concatenate(parts, axis=1).tobytes() if parts else b""
    return body if table is None else table_share(table) + body


def norm_share(norm: Norm) -> bytes:
    """Return the share of a LAYERNORM or RMSNORM of a model."""
    return row_norm_share(norm.eps_term, norm.gain, norm.shift, norm.bias)


def row_norm_share(
    eps: int,
    gain: npt.NDArray[np.uint16],
    shift: npt.NDArray[np.uint8],
    bias: npt.NDArray[np.int8],
) -> bytes:
    """Return the share of a LAYERNORM or RMSNORM; gain, shift and bias are (N,)."""
    columns = gain.shape[0]
    records = np.zeros(up(columns), _NORM)
    records["gain"][:columns] = gain
    records["shift"][:columns] = shift
    records["bias"][:columns] = bias
    data = eps.to_bytes(8, "little") + bytes(PIECE - 8) + records.tobytes()
    return data + bytes(-len(data) % PIECE)


def table_share(table: npt.NDArray[np.int8]) -> bytes:
    """Return the share of a table instruction: entry i serves the int8 with bit pattern i."""
    if table.shape != (TABLE_BYTES,) or table.dtype != np.int8:
        raise ValueError(f"table: given {table.shape} {table.dtype}, allowed ({TABLE_BYTES},) int8")
    return table.tobytes()
