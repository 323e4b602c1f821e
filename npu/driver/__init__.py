# SPDX-License-Identifier: Apache-2.0
"""What a host does for the chip while a model runs."""
