# SPDX-License-Identifier: Apache-2.0
"""One form for one network, whatever it came from: the first pass."""
