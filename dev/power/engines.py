# SPDX-License-Identifier: Apache-2.0
"""The engines of the default chip: which netlist stands for each, and where it is in the chip."""

from __future__ import annotations

from dataclasses import dataclass

from dev import synth

ENGINES_OF = "u_core.u_engines."
GEMM = ENGINES_OF + "u_gemm."
ARRAY = GEMM + "u_sums.u_array."
EDGE = 16
"""Rows of the array, and elements of a row."""


@dataclass(frozen=True)
class Engine:
    """A part of the chip that has a netlist of its own.

    Attributes:
        block: the netlist's module; `name` is that of the engine.
        scopes: of its instances, below the top, each with a dot at its end.
        without: modules in it that are engines of their own.
        asleep: whether its clock stands still as long as it has nothing to do.
        own_clock: whether the block that stops it is this engine's, not another one's.
    """

    block: synth.SynthBlock
    scopes: tuple[str, ...]
    without: tuple[str, ...] = ()
    asleep: bool = True
    own_clock: bool = False

    @property
    def name(self) -> str:
        """How reports and the command line call it."""
        return self.block.name


def _one(name: str, top: str, scope: str, *, asleep: bool = True, **parameters: int) -> Engine:
    block = synth.SynthBlock(name, top, parameters)
    return Engine(block, (scope + ".",), asleep=asleep, own_clock=asleep)


ROWS = Engine(
    # The last row is the widest: by 1 of 20 bits of its sums wider than the mean.
    synth.SynthBlock("rows", "npu_pe_row", {"ArrayDim": EDGE, "Index": EDGE - 1}),
    tuple(f"{ARRAY}gen_row[{row}].u_row." for row in range(EDGE)),
)
AROUND = Engine(
    synth.SynthBlock("array", "npu_systolic_array", {"ArrayDim": EDGE}), (ARRAY,), ("npu_pe_row",)
)
"""What stands around the rows: weights on their way down, activations in time, clock gates."""
ENGINES = (
    ROWS,
    AROUND,
    Engine(
        synth.SynthBlock("gemm", "npu_gemm", {"ArrayDim": EDGE}),
        (GEMM,),
        ("npu_systolic_array", "npu_gemm_post"),
        own_clock=True,
    ),
    Engine(synth.SynthBlock("post", "npu_gemm_post", {"Lanes": EDGE}), (GEMM + "u_post.",)),
    _one("softmax", "npu_softmax", ENGINES_OF + "u_softmax"),
    _one("norm", "npu_nrm", ENGINES_OF + "u_nrm"),
    _one("vector", "npu_vec", ENGINES_OF + "u_vec"),
    _one("dma-load", "npu_dma_load", ENGINES_OF + "u_load"),
    _one("dma-store", "npu_dma_store", ENGINES_OF + "u_store"),
    _one("sram", "npu_sram", ENGINES_OF + "u_sram", asleep=False),
    _one("stream", "npu_streamer", "u_core.u_streamer", asleep=False),
    _one("seq", "npu_seq", "u_core.u_seq", asleep=False),
    _one(
        "mem-port", "npu_mem_port", "u_core.u_mem_port", asleep=False, RdEngines=0o706, WrEngines=1
    ),
    _one("axi-mux", "npu_axi_mux", "gen_mux.u_mux", asleep=False),
    _one("host", "npu_host", "u_host", asleep=False),
    _one("cmd", "npu_cmd", "gen_cmd.u_cmd", asleep=False),
    _one("cop", "npu_cop", "gen_cop.u_cop", asleep=False),
)
"""In the order of the reports. The last two have their clock gates inside."""
