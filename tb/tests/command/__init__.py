# SPDX-License-Identifier: Apache-2.0
"""The command port: registers, ring, tiles and products."""
