# SPDX-License-Identifier: Apache-2.0
"""The chip on an FPGA board: self test over a serial port, bitstream, microGPT."""
