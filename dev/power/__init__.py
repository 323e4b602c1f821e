# SPDX-License-Identifier: Apache-2.0
"""Energy of the chip's engines: toggles of the RTL's registers on netlists of gates."""
