# SPDX-License-Identifier: Apache-2.0
"""What the command port's status registers and counters say, decoded."""

from __future__ import annotations

from dataclasses import dataclass

from spec.regs import CMD_FIELDS, RING_STATUS_TEXT, CmdReg, RingStatus


def meaning(code: int) -> str:
    """Return DESC_STATUS[7:0] in words."""
    known = code in RingStatus.__members__.values()
    return f"{code:#04x}, {RING_STATUS_TEXT[RingStatus(code)] if known else 'unknown'}"


@dataclass(frozen=True, slots=True)
class Status:
    """CTRL_STATUS and DESC_STATUS.

    Attributes:
        busy, done, error: of the port, however it was started.
        ring_busy: the descriptor ring is running.
        ring_code: DESC_STATUS[7:0].
        index: ring index of the entry that completed last or failed.
        pending: ring entries between DESC_TAIL and DESC_HEAD.
    """

    busy: bool
    done: bool
    error: bool
    ring_busy: bool
    ring_code: int
    index: int
    pending: int

    @classmethod
    def of(cls, ctrl_status: int, desc_status: int) -> Status:
        """Decode the two registers."""
        return cls(
            busy=bool(CMD_FIELDS["CTRL_STATUS_BUSY"].get(ctrl_status)),
            done=bool(CMD_FIELDS["CTRL_STATUS_DONE"].get(ctrl_status)),
            error=bool(CMD_FIELDS["CTRL_STATUS_ERROR"].get(ctrl_status)),
            ring_busy=bool(CMD_FIELDS["DESC_STATUS_BUSY"].get(desc_status)),
            ring_code=desc_status & 0xFF,
            index=CMD_FIELDS["DESC_STATUS_INDEX"].get(desc_status),
            pending=CMD_FIELDS["DESC_STATUS_PENDING"].get(desc_status),
        )


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of the command port, each modulo 2^32.

    Attributes:
        cycles, macs, ops, errors, unsupported_ops, stall_cycles, scratch_bytes,
        thermal_throttle: PERF_* of these names; `clear_counters` clears them.
        ring_cycles: DESC_TIMEOUT_COUNT.
        bytes_read, bytes_written, read_beats, write_beats: DESC_* of these names; `clear` clears
            these and ring_cycles.
    """

    cycles: int
    macs: int
    ops: int
    errors: int
    unsupported_ops: int
    stall_cycles: int
    scratch_bytes: int
    thermal_throttle: int
    ring_cycles: int
    bytes_read: int
    bytes_written: int
    read_beats: int
    write_beats: int


COUNTER_REGISTERS = {
    "cycles": CmdReg.PERF_CYCLES,
    "macs": CmdReg.PERF_MACS,
    "ops": CmdReg.PERF_OPS,
    "errors": CmdReg.PERF_ERRORS,
    "unsupported_ops": CmdReg.PERF_UNSUPPORTED_OPS,
    "stall_cycles": CmdReg.PERF_STALL_CYCLES,
    "scratch_bytes": CmdReg.PERF_SCRATCH_BYTES,
    "thermal_throttle": CmdReg.PERF_THERMAL_THROTTLE,
    "ring_cycles": CmdReg.DESC_TIMEOUT_COUNT,
    "bytes_read": CmdReg.DESC_BYTES_READ,
    "bytes_written": CmdReg.DESC_BYTES_WRITTEN,
    "read_beats": CmdReg.DESC_READ_BEATS,
    "write_beats": CmdReg.DESC_WRITE_BEATS,
}
"""The register of each field of Counters."""
