# SPDX-License-Identifier: Apache-2.0
"""A chip in other people's hands: an archive of plain SystemVerilog with what tools ask for."""
