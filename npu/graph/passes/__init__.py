# SPDX-License-Identifier: Apache-2.0
"""Pure functions from graph to graph, in the order in which the compiler applies them."""
