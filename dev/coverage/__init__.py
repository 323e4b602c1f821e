# SPDX-License-Identifier: Apache-2.0
"""Which lines and branches of `rtl/` the tests execute: points, figures, pages, tests by change."""
