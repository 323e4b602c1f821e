# SPDX-License-Identifier: Apache-2.0
"""Constraints of the chip and its blocks in SDC: what is timed, and what a release carries."""

from __future__ import annotations

_TEXT = """\
create_clock -name clk -period {period} [get_ports clk_i]
catch {{set_false_path -from [get_ports rst_ni]}}
set_input_delay {input_delay} -clock clk {inputs}
set_output_delay {output_delay} -clock clk {outputs}
"""


def sdc(
    period: str,
    input_delay: str = "0",
    output_delay: str = "0",
    inputs: str = "[all_inputs]",
    outputs: str = "[all_outputs]",
) -> str:
    """Return one clock, the reset, which begins when it likes, and delays at the ports.

    Args:
        period: of the clock, in the library's unit of time.
        input_delay: time behind the clock at which inputs are there.
        output_delay: time before the next clock at which outputs must be there.
        inputs: those with the delay, as a collection.
        outputs: likewise.
    """
    return _TEXT.format(
        period=period,
        input_delay=input_delay,
        output_delay=output_delay,
        inputs=inputs,
        outputs=outputs,
    )
