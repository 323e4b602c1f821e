# SPDX-License-Identifier: Apache-2.0
"""Short scenes on both AXI ports: one that breaks each rule, some that break none."""

from __future__ import annotations

from dataclasses import dataclass

Cycle = dict[str, int]
"""What differs from an idle port in a cycle, by signals of `unit_axi_rules`."""
BURST: Cycle = {"arsize": 4, "arburst": 1, "awsize": 4, "awburst": 1}
QUIET: Cycle = {**BURST, "rready": 1, "bready": 1, "lite_rready": 1, "lite_bready": 1}
WAIT: Cycle = {}
ALL_BYTES, PAGE = 0xFFFF, 0x1000
HELD_CHANNELS = {
    "ar": ("ready", "addr", "len", "id", "size", "burst"),
    "aw": ("ready", "addr", "len", "id", "size", "burst"),
    "w": ("ready", "data", "strb", "last"),
    "r": ("ready", "data", "resp", "id", "last"),
    "b": ("ready", "resp", "id"),
    "lite_ar": ("ready", "addr"),
    "lite_aw": ("ready", "addr"),
    "lite_w": ("ready", "data", "strb"),
    "lite_r": ("ready", "data", "resp"),
    "lite_b": ("ready", "resp"),
}
"""Channels, with what must not change while they wait for the first."""


@dataclass(frozen=True)
class AxiScene:
    """What is said on the ports, and what the monitor says of the last cycle.

    Attributes:
        cycles: behind a reset, or in it if `asleep`.
        says: a part of the message; "" for nothing.
        asleep: whether the reset is still there.
    """

    cycles: list[Cycle]
    says: str = ""
    asleep: bool = False


def ask(number: int = 1, beats: int = 1, address: int = 0, **other: int) -> Cycle:
    """Return a cycle in which a read is asked for and taken."""
    fields = {"arvalid": 1, "arready": 1, "arid": number, "arlen": beats - 1, "araddr": address}
    return fields | other


def word(number: int = 1, *, last: bool = True, **other: int) -> Cycle:
    """Return a cycle with a beat of read data."""
    return {"rvalid": 1, "rid": number, "rlast": int(last), **other}


def put(number: int = 1, beats: int = 1, address: int = 0, **other: int) -> Cycle:
    """Return a cycle in which a write is asked for and taken."""
    fields = {"awvalid": 1, "awready": 1, "awid": number, "awlen": beats - 1, "awaddr": address}
    return fields | other


def data(*, last: bool = True) -> Cycle:
    """Return a cycle with a beat of data to be written."""
    return {"wvalid": 1, "wready": 1, "wstrb": ALL_BYTES, "wlast": int(last)}


def answer(number: int = 1, **other: int) -> Cycle:
    """Return a cycle with an answer to a write."""
    return {"bvalid": 1, "bid": number, **other}


LITE_READ: Cycle = {"lite_arvalid": 1, "lite_arready": 1, "lite_araddr": 8}
LITE_WRITE: Cycle = {
    **{"lite_awvalid": 1, "lite_awready": 1, "lite_awaddr": 8},
    **{"lite_wvalid": 1, "lite_wready": 1, "lite_wdata": 5},
}
LITE_WORD: Cycle = {"lite_rvalid": 1, "lite_rdata": 7}
LITE_ANSWER: Cycle = {"lite_bvalid": 1}

LEGAL = {
    "one of each": AxiScene([ask(), word(), put(), data(), answer()]),
    "up to the end of a page": AxiScene([ask(1, 256, 0), put(2, 2, PAGE - 32)]),
    "two identifiers, answered crosswise": AxiScene(
        [ask(1, 2), ask(2, 1), word(1, last=False), word(2), word(1)]
    ),
    "writes answered crosswise": AxiScene(
        [put(1), put(2), data(), data(), answer(2), answer(1), put(1), data(), answer(1)]
    ),
    "one comes while one goes": AxiScene([ask(1), ask(2), word(1) | ask(3), word(2), word(3)]),
    "errors": AxiScene(
        [ask(), word(rresp=2), ask(), word(rresp=3), put(), data(), answer(bresp=2)]
    ),
    "waits for everything": AxiScene(
        [
            *(ask(arready=0), ask(), word(rready=0), word()),
            *(put(awready=0), put(), data() | {"wready": 0}, data(), answer(bready=0), answer()),
        ]
    ),
    "registers": AxiScene([LITE_READ, LITE_WORD, LITE_WRITE, LITE_ANSWER]),
    "registers with errors": AxiScene(
        [LITE_READ, LITE_WORD | {"lite_rresp": 2}, LITE_WRITE, LITE_ANSWER | {"lite_bresp": 2}]
    ),
}
"""What the standard allows."""


def _held(channel: str, change: str) -> AxiScene:
    """Return a scene in which something changes that must stay until ready."""
    before = {
        "r": [ask(1, 2)],
        "b": [put(), data()],
        "lite_r": [LITE_READ],
        "lite_b": [LITE_WRITE],
        "w": [put(1, 2)],
    }.get(channel, [])
    offer = {f"{channel}valid": 1, f"{channel}ready": 0}
    if channel in ("r", "b"):
        offer[f"{channel}id"] = 1
    if change == "ready":  # it goes instead of being taken
        return AxiScene([*before, offer, WAIT], "valid was withdrawn before ready")
    usual = {**BURST, **offer}.get(f"{channel}{change}", 0)
    wrong = {"addr": 16, "size": 3}.get(change, 2 if change in ("burst", "resp") else usual + 1)
    changed = {**offer, f"{channel}{change}": wrong}
    return AxiScene([*before, offer, changed], "data changed before ready")


BREACHES = {
    **{
        f"{channel}_{'withdrawn' if change == 'ready' else change}": _held(channel, change)
        for channel, changes in HELD_CHANNELS.items()
        for change in changes
    },
    "read_crosses_page": AxiScene([ask(1, 2, PAGE - 16)], "AXI read burst"),
    "read_not_aligned": AxiScene([ask(1, 1, 8)], "AXI read burst"),
    "read_size": AxiScene([ask(arsize=3)], "AXI read burst"),
    "read_wraps": AxiScene([ask(arburst=2)], "AXI read burst"),
    "write_crosses_page": AxiScene([put(1, 2, PAGE - 16)], "AXI write burst"),
    "write_not_aligned": AxiScene([put(1, 1, 8)], "AXI write burst"),
    "write_size": AxiScene([put(awsize=3)], "AXI write burst"),
    "write_fixed": AxiScene([put(awburst=0)], "AXI write burst"),
    "reads_outstanding": AxiScene([ask(1), ask(2), ask(3)], "more than 2 reads outstanding"),
    "read_of_nobody": AxiScene([ask(1), word(2)], "read data for identifier 2, which has no burst"),
    "read_after_the_last": AxiScene([ask(1), word(1), word(1)], "identifier 1, which has no burst"),
    "read_ends_early": AxiScene([ask(1, 2), word(1)], "RLAST of identifier 1 is 1 with 2 beats"),
    "read_ends_late": AxiScene([ask(1), word(1, last=False)], "RLAST of identifier 1 is 0 with 1"),
    "writes_outstanding": AxiScene(
        [put(1), put(2) | data(), put(3) | data()], "more than 2 writes outstanding"
    ),
    "write_without_address": AxiScene([data()], "write data without an address"),
    "write_ends_early": AxiScene([put(1, 2), data()], "WLAST is 1 at beat 0 of 2"),
    "write_ends_late": AxiScene([put(1), data(last=False)], "WLAST is 0 at beat 0 of 1"),
    "answer_to_nobody": AxiScene(
        [put(1), data(), answer(2)], "write response for identifier 2, which has no burst"
    ),
    "answer_before_the_last_beat": AxiScene(
        [put(1), answer(1)], "write response of identifier 1 before the last beat"
    ),
    "answer_of_the_wrong_burst": AxiScene(
        [put(1), put(2), data(), answer(2)], "write response of identifier 2 before the last beat"
    ),
    "read_exclusive": AxiScene([ask(), word(rresp=1)], "AXI: EXOKAY without"),
    "write_exclusive": AxiScene([put(), data(), answer(bresp=1)], "AXI: EXOKAY without"),
    "lite_read_of_nobody": AxiScene([LITE_WORD], "AXI4-Lite: read data without a request"),
    "lite_answer_to_nobody": AxiScene([LITE_ANSWER], "write response without a request"),
    "lite_answer_before_data": AxiScene(
        [LITE_WRITE | {"lite_wvalid": 0}, LITE_ANSWER], "write response without a request"
    ),
    "lite_read_exclusive": AxiScene([LITE_READ, LITE_WORD | {"lite_rresp": 1}], "Lite: EXOKAY"),
    "lite_write_exclusive": AxiScene([LITE_WRITE, LITE_ANSWER | {"lite_bresp": 1}], "Lite: EXOKAY"),
    **{
        f"{name}_in_reset": AxiScene(
            [{f"{name}valid": 1}],
            f"AXI{'4-Lite' * name.startswith('lite_')}: something is valid in reset",
            asleep=True,
        )
        for name in HELD_CHANNELS
    },
}
"""Each ends with the breach whose name it has."""
