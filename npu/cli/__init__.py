# SPDX-License-Identifier: Apache-2.0
"""The command line `npu`; it stands above all that its commands call."""
