# SPDX-License-Identifier: Apache-2.0
"""Levels and paths of small netlists, by hand and of yosys."""

from __future__ import annotations

from typing import Any

import pytest

from dev import netlist
from dev.netlist import ALL, LUTS, Netlist, Stage

CLOCK = 2


def lut(inputs: list[int], output: int) -> dict[str, Any]:
    """Return a LUT."""
    return {"type": "$lut", "parameters": {}, "connections": {"A": inputs, "Y": [output]}}


def flip_flop(given: int, output: int) -> dict[str, Any]:
    """Return a flip-flop."""
    connections = {"C": [CLOCK], "D": [given], "E": ["1"], "Q": [output], "R": ["0"]}
    return {"type": "$_SDFFE_PP0P_", "parameters": {}, "connections": connections}


def carry(sums: list[Any], into: Any, carries: list[Any], outputs: list[int]) -> dict[str, Any]:  # noqa: ANN401
    """Return four bits of a carry chain."""
    connections = {
        "CI": [into],
        "CYINIT": ["0"],
        "DI": ["0"] * 4,
        "S": sums,
        "CO": carries,
        "O": outputs,
    }
    return {"type": "CARRY4", "parameters": {}, "connections": connections}


def multiplier(a: list[int], b: list[int], y: list[int]) -> dict[str, Any]:
    """Return a multiplier."""
    return {"type": "$__DSP", "parameters": {}, "connections": {"A": a, "B": b, "Y": y}}


def memory(address: list[int], data: list[int], clocked: str) -> dict[str, Any]:
    """Return a memory with a read port and a write port that is never used."""
    parameters = {"RD_PORTS": "1", "ABITS": "10", "WIDTH": f"{len(data):b}"}
    connections = {"RD_ADDR": address, "RD_DATA": data, "WR_DATA": ["0"] * len(data)}
    return {
        "type": "$mem_v2",
        "parameters": parameters | {"RD_CLK_ENABLE": clocked},
        "connections": connections,
    }


def flat(cells: dict[str, Any], names: dict[str, list[int]] | None = None) -> Netlist:
    """Return a netlist with input 10 and output 90, and with names of nets."""
    ports = {
        "given_i": {"direction": "input", "bits": [10]},
        "made_o": {"direction": "output", "bits": [90]},
    }
    nets = {name: {"hide_name": 0, "bits": bits} for name, bits in (names or {}).items()}
    body = {"ports": ports, "cells": cells, "netnames": nets}
    return Netlist({"modules": {"top": body}}, "top")


def test_luts_in_a_row_are_levels() -> None:
    """From a register through an instance, past a shorter way, to another register."""
    scope = {"type": "$scopeinfo", "attributes": {"module": "npu_a$top.u_a"}, "connections": {}}
    cells = {
        "u_a": scope,
        "$ff1": flip_flop(10, 20),
        "$flatten\\u_a.$1": lut([20], 21),
        "$flatten\\u_a.$2": lut([20, 21], 22),
        "$3": lut([22], 23),
        "$ff2": flip_flop(23, 90),
    }
    found = flat(cells, {"first_q": [20], "u_a.in_i": [20], "second_q": [90], "made_o": [90]})
    (path, *shorter) = found.paths(10)
    stages = (Stage("u_a", "npu_a", 2), Stage("", "top", 1))
    assert path == netlist.Path("first_q", "second_q", 3, stages)
    assert shorter == []
    assert found.levels() == found.levels(LUTS) == 3


def test_a_carry_chain_is_a_level_however_long() -> None:
    """Its own, behind the LUT in front of it; LUTs alone end there."""
    cells = {
        "$1": lut([10], 20),
        "$2": carry([20, "0", "0", "0"], "0", [30, 31, 32, 33], [40, 41, 42, 43]),
        "$3": carry(["0", "0", "0", "0"], 33, [50, 51, 52, 53], [60, 61, 62, 63]),
        "$4": lut([63], 90),
    }
    assert flat(cells).levels(ALL) == 3
    assert flat(cells).levels(LUTS) == 1


def test_a_bit_of_a_chain_does_not_wait_for_later_ones() -> None:
    """The first bit may decide the second one's input."""
    cells = {
        "$1": carry([10, 41, "0", "0"], "0", [30, 31, 32, 33], [40, 90, 42, 43]),
        "$2": lut([40], 41),
    }
    found = flat(cells)
    assert (found.levels(), found.circles()) == (3, 0)


def test_multipliers_and_reads_without_a_clock_are_levels() -> None:
    """A read with the clock ends one path and begins another."""
    cells = {
        "$1": multiplier([10], [10], [20, 21]),
        "u_m.mem_q": memory([20, 21], [30], "0"),
        "$2": lut([30], 90),
    }
    found = flat(cells)
    assert [stage.levels for stage in found.paths(1)[0].stages] == [1, 1, 1]
    assert found.levels(LUTS) == 1
    found = flat(cells | {"u_m.mem_q": memory([20, 21], [30], "1")})
    ends = {(path.begin, path.end, path.levels) for path in found.paths(10)}
    assert ends == {("given_i", "u_m.mem_q", 1), ("u_m.mem_q", "made_o", 1)}


def test_both_factors_decide_a_product() -> None:
    """The later one of them says when it is there."""
    late = {"$0": lut([10], 11), "$2": lut([20], 90)}
    assert flat(late | {"$1": multiplier([11], [10], [20])}).levels() == 3
    assert flat(late | {"$1": multiplier([10], [11], [20])}).levels() == 3


def test_a_register_has_the_name_of_its_own_instance() -> None:
    """Not a shorter one of the net that its value leaves by, nor one of what reads it."""
    cells = {
        "$flatten\\u_a.$ff": flip_flop(10, 20),
        "$flatten\\u_a.$1": lut([20], 90),
    }
    names = {"x_o": [20], "u_b.v_q": [20], "u_a.state_q": [20], "u_a.o": [20]}
    assert flat(cells, names).paths(1)[0].begin == "u_a.state_q"


def test_what_closes_a_circle_is_left_out_and_counted() -> None:
    """It ends, and says how many steps it left out."""
    found = flat({"$1": lut([10, 21], 20), "$2": lut([20], 21), "$3": lut([20], 90)})
    assert found.circles() == 1
    assert found.levels() in (2, 3)
    assert flat({"$1": lut([10], 90)}).circles() == 0


def test_constants_are_on_no_path() -> None:
    """A LUT without inputs takes no level."""
    found = flat({"$1": lut([], 20), "$2": lut([20, 10], 90)})
    assert found.levels() == 1
    assert found.paths(10)[0].begin == "given_i"


def test_paths_through_the_same_instances_are_one() -> None:
    """Bits and numbers of instances make no other path, another beginning does."""
    cells: dict[str, Any] = {}
    for lane in range(3):
        cells[f"$a{lane}"] = flip_flop(10, 20 + lane)
        cells[f"$flatten\\gen_lane[{lane}].u_lane.$1"] = lut([20 + lane], 30 + lane)
        cells[f"$b{lane}"] = flip_flop(30 + lane, 40 + lane)
    names = {"a_q": [20, 21], "other_q": [22], "b_q": [40], "c_q": [41], "d_q": [42]}
    paths = flat(cells, names).paths(10)
    assert [(path.begin, path.end) for path in paths] == [("a_q", "b_q"), ("other_q", "d_q")]
    assert len(flat(cells, names).paths(1)) == 1


@pytest.mark.parametrize(
    ("cell", "instance"),
    [
        ("$flatten\\u_a.\\gen_b[3].u_c.$abc$12$blif$3", "u_a.gen_b[3].u_c"),
        ("$flatten\\u_a.$auto$ff.cc:337:slice$7", "u_a"),
        ("$abc$12$blif$3", ""),
        ("u_a.mem_q", "u_a"),
        ("mem_q", ""),
    ],
)
def test_the_name_of_a_cell_says_its_instance(cell: str, instance: str) -> None:
    """As yosys names them when it flattens."""
    assert netlist.instance_of(cell) == instance
