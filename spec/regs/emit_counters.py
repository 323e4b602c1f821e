# SPDX-License-Identifier: Apache-2.0
"""Text of the package that says where the performance counters lie in their memory."""

from spec.regs.emit_start import choice
from spec.regs.source import Window


def systemverilog(windows: tuple[Window, ...], origin: str) -> str:
    """Return the text of build/gen/regs/npu_counters_pkg.sv.

    Raises:
        ValueError: two counters have one place.
    """
    found = [r for window in windows for r in window.registers if r.counter is not None]
    counters = {register.counter: register for register in found}
    if len(counters) != len(found):
        raise ValueError(
            f"{len(found)} registers have a counter_place, allowed one each: "
            f"{', '.join(f'{register.name} {register.counter}' for register in found)}"
        )
    places = [
        (f"8'h{register.offset:02X}", f"'{{known: 1'b1, number: 4'd{place}}}")
        for place, register in sorted(counters.items())
    ]
    names = {
        place: register.name.rstrip("0")
        for place, register in counters.items()
        if register.name[-1] not in "123456789"
    }
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "//",
        f"// {origin}",
        "",
        "package npu_counters_pkg;",
        "",
        "  // Where a register of the chip's window lies in the memory of npu_perf",
        "  typedef struct packed {",
        "    logic       known;   // it does",
        "    logic [3:0] number;  // its place, with known",
        "  } counter_place_t;",
        "",
        "  // Places, of an array its first",
        *(
            f"  localparam logic [3:0] Counter{name.title().replace('_', '')} = 4'd{place};"
            for place, name in sorted(names.items())
        ),
        "",
        choice("counter_place", "counter_place_t", "logic [7:0] offset", places, "'0"),
        "",
        "endpackage",
        "",
    ]
    return "\n".join(lines)
