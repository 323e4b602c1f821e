# SPDX-License-Identifier: Apache-2.0
"""Who executes each operation, and its form there: the second pass."""
