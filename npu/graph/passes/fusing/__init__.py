# SPDX-License-Identifier: Apache-2.0
"""One operation of several, in integers: the last pass, and the borders of the graph."""
