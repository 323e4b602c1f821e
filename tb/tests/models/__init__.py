# SPDX-License-Identifier: Apache-2.0
"""Models, networks and plans as a host runs them."""
