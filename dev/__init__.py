# SPDX-License-Identifier: Apache-2.0
"""What developers run: set-up, static checks, synthesis, faults, quality, pages of the docs."""
