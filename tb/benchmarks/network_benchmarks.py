# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of networks: single operations with random integers, from memory to memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from golden import decoder
from npu.compiler import ideal
from npu.compiler.block_graph import block_graph
from npu.compiler.ideal import LeastWork
from npu.compiler.network import compile_network
from npu.graph.form import (
    Array,
    Element,
    Graph,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.planner.network_plan import plan_of
from npu.runtime.prepare import bases_from, prepare
from npu.runtime.tensor_rows import to_rows
from spec.isa import DEPTHWISE_TAPS, Opcode
from tb.bench.environment import INPUT
from tb.benchmarks import measured_models
from tb.benchmarks.benchmark import Benchmark, Interval, met_keys
from tb.benchmarks.benchmark_load import BenchmarkLoad, ProgramRun
from tb.models.light_networks import light_network
from tb.models.sample_model import TEXT
from tb.models.tiny_networks import tiny_network

LATENCY = 40
LAYER = 0


def _load(
    graph: Graph,
    random: np.random.Generator | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> BenchmarkLoad:
    """Return a network of one segment with given inputs, or with full-range ones."""
    network = compile_network(graph)
    plan = plan_of(network)
    prepared = prepare(plan, bases_from(plan, INPUT))
    (segment,), (start,) = network.segments, prepared.starts
    pieces = list(prepared.memory)
    for name in segment.reads:
        kind = network.graph.type(name)
        if inputs is not None:
            values = inputs[name]
        else:
            assert random is not None
            values = random.integers(-128, 128, kind.shape).astype(np.int8)
        pieces.append((prepared.address(name), to_rows(values, kind)))
    program = ProgramRun(segment.program.instructions, start)
    return BenchmarkLoad([piece for piece in pieces if piece[1]], [program])


def _tensor(
    name: str,
    shape: tuple[int, ...],
    data: npt.NDArray[np.int8] | None = None,
) -> Tensor:
    return Tensor(name, TensorType(shape, Element.I8, Quantisation((1.0,))), data)


def _graph(operation: Operation, *tensors: Tensor) -> Graph:
    known = {tensor.name: tensor for tensor in tensors}
    return Graph(operation.kind, ("x",), ("y",), known, (operation,))


def _convolution(
    names: tuple[str, str, str],
    channels: int,
    kernel: int,
    stride: int,
    groups: int,
    random: np.random.Generator,
) -> tuple[Operation, Tensor]:
    """Return a convolution with random weights, and these.

    Args:
        names: of operation, input and output.
        channels: of both.
        kernel: its edge.
        stride: in both directions.
        groups: of channels.
        random: for weights and scales.
    """
    name, x, y = names
    pad, inner = kernel // 2, channels // groups
    weight = random.integers(-127, 128, (kernel, kernel, inner, channels), np.int8)
    operation = Operation(
        name,
        "conv",
        (x, f"{name}.w"),
        (y,),
        {
            "strides": (stride, stride),
            "pads": (pad, pad, pad, pad),
            "dilations": (1, 1),
            "groups": groups,
            "relu": False,
            "combine": "",
            "product_mult": 0,
            "product_shift": 0,
            "pad_value": 0,
            "x_zero": 0,
            "w_zero": 0,
        },
        place=OperationPlace(Target.NPU, "measured"),
        integers={
            "bias": random.integers(-(1 << 12), 1 << 12, channels).astype(np.int32),
            "mult": random.integers(1 << 14, 1 << 15, channels).astype(np.uint16),
            "shift": np.full(channels, 22 if groups > 1 else 25, np.uint8),
        },
    )
    return operation, _tensor(f"{name}.w", weight.shape, weight)


def _conv(
    size: int,
    channels: int,
    kernel: int,
    stride: int,
    groups: int,
    random: np.random.Generator,
) -> BenchmarkLoad:
    names = ("conv", "x", "y")
    operation, weight = _convolution(names, channels, kernel, stride, groups, random)
    out = size // stride
    graph = _graph(
        operation,
        _tensor("x", (1, size, size, channels)),
        weight,
        _tensor("y", (1, out, out, channels)),
    )
    return _load(graph, random)


def _conv_case(
    name: str,
    size: int,
    channels: int,
    kernel: int,
    stride: int = 1,
    pieces: int = 0,
    between: int = 0,
) -> Benchmark:
    """A convolution from memory to memory.

    Args:
        name: of the benchmark.
        size: of the image in both directions.
        channels: of image and result.
        kernel: edge of the filter.
        stride: in both directions.
        pieces: of a depthwise convolution, the GEMMs of which it is made; 0 for one of all
            channels. A piece also counts the pixels between its lines, and four taps of each.
        between: pixels between the lines of a convolution of all channels that count as well.
    """
    groups = channels if pieces else 1
    pixels = (size // stride) ** 2
    macs = pixels * kernel**2 * channels * (channels // groups)
    counted = (pixels + between) * kernel**2 * channels**2
    if pieces:
        counted = (size * (size + 1) - pieces) * kernel * DEPTHWISE_TAPS * channels
    return Benchmark(
        name,
        {"size": size, "channels": channels, "stride": stride, "latency": LATENCY},
        LeastWork(macs),
        partial(_conv, size, channels, kernel, stride, groups),
        interval=Interval.CHAIN,
        opcode=Opcode.GEMM,
        counted=counted,
        traced=True,
        pictured=False,
    )


def _pooling(x: str, y: str) -> Operation:
    return Operation(
        "pool",
        "maxpool",
        (x,),
        (y,),
        {"window": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0), "dilations": (1, 1)},
        place=OperationPlace(Target.NPU, "measured"),
    )


def _pool(size: int, channels: int, random: np.random.Generator) -> BenchmarkLoad:
    shape = (1, size, size, channels)
    graph = _graph(
        _pooling("x", "y"), _tensor("x", shape), _tensor("y", (1, size // 2, size // 2, channels))
    )
    return _load(graph, random)


def three_operations(size: int, channels: int, random: np.random.Generator) -> Graph:
    """Return a network of a convolution, a pool and a convolution, `first`, `pool` and `last`."""
    first, first_weight = _convolution(("first", "x", "a"), channels, 3, 1, 1, random)
    last, last_weight = _convolution(("last", "b", "y"), channels, 1, 1, 1, random)
    whole, half = ((1, one, one, channels) for one in (size, size // 2))
    shapes = {"x": whole, "a": whole, "b": half, "y": half}
    tensors = {name: _tensor(name, shape) for name, shape in shapes.items()}
    tensors |= {one.name: one for one in (first_weight, last_weight)}
    return Graph("three", ("x",), ("y",), tensors, (first, _pooling("a", "b"), last))


def _whole(network: Callable[[], Graph], random: np.random.Generator) -> BenchmarkLoad:
    return _load(network(), random)


def _whole_case(
    name: str, network: Callable[[], Graph], macs: int, counted: int, necessary: int
) -> Benchmark:
    """A whole network from memory to memory, with random weights.

    Args:
        name: of the benchmark.
        network: returns it.
        macs: multiplications of its convolutions and matrices.
        counted: those that the chip does, padded channels included.
        necessary: bytes of its image, weights and result.
    """
    return Benchmark(
        name,
        {"latency": LATENCY},
        LeastWork(macs, necessary),
        partial(_whole, network),
        counted=counted,
        limit=40_000_000,
        memory_bytes=64 << 20,
        pictured=False,
    )


def _block(rows: int, random: np.random.Generator) -> BenchmarkLoad:
    del random  # the input is a real one
    model = measured_models.tiny("gpt2")
    inputs = decoder.residuals(model, list(TEXT.encode()[:rows]))[LAYER]
    return _load(block_graph(model, LAYER, rows, fused=True), inputs={"x": inputs})


def _block_case(rows: int) -> Benchmark:
    hidden, heads, ffn = 64, 4, 256
    work = ideal.block(rows, hidden, heads, ffn)
    # A block of rows meets the keys of its last row, and the numerators are 16-bit values.
    unseen = 3 * met_keys(rows) - 2 * ideal.visible_keys(rows, 0)
    return Benchmark(
        f"graph_block_s{rows}",
        {"rows": rows, "hidden": hidden, "heads": heads, "ffn": ffn, "latency": LATENCY},
        work,
        partial(_block, rows),
        counted=work.macs + unseen * hidden,
        pictured=False,
    )


def network_cases() -> Iterator[Benchmark]:
    """Yield the benchmarks of networks."""
    yield _conv_case("conv_3x3_64", 14, 64, 3)
    yield _conv_case("conv_3x3_64_s2", 28, 64, 3, stride=2)
    yield _conv_case("conv_3x3_32", 28, 32, 3)
    yield _conv_case("conv_3x3_16", 28, 16, 3, between=20)
    yield _conv_case("conv_1x1_64", 14, 64, 1)
    yield _conv_case("dw_3x3_64", 14, 64, 3, pieces=4)
    yield Benchmark(
        "maxpool_2x2",
        {"size": 28, "channels": 64, "latency": LATENCY},
        LeastWork(cycles=1),
        partial(_pool, 28, 64),
        interval=Interval.CHAIN,
        opcode=Opcode.VEC,
        traced=True,
        pictured=False,
    )
    yield _block_case(16)
    yield _block_case(1)
    light, tiny = partial(light_network, "squeezenet"), partial(partial, tiny_network)
    yield _whole_case("net_squeezenet", light, 349_151_936, 349_320_936, 1_386_024)
    yield _whole_case("mlperf_kws", tiny("kws"), 2_656_768, 2_825_280, 22_518)
    yield _whole_case("mlperf_ww", tiny("ww"), 826_368, 840_672, 47_243)
    yield _whole_case("mlperf_vww", tiny("vww"), 7_489_664, 8_013_056, 235_762)
    yield _whole_case("mlperf_ic", tiny("ic"), 12_501_632, 12_662_400, 80_442)
    yield _whole_case("mlperf_ad", tiny("ad"), 264_192, 264_192, 265_472)


def nightly_cases() -> Iterator[Benchmark]:
    """Yield the benchmarks of networks that take minutes."""
    resnet = partial(light_network, "resnet50")
    yield _whole_case("net_resnet50", resnet, 4_089_184_256, 4_089_284_608, 25_654_440)
