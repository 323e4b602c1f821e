# SPDX-License-Identifier: Apache-2.0
"""The command line `npu`, and those of its commands that need no chip."""
