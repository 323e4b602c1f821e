# SPDX-License-Identifier: Apache-2.0
"""Networks of any shape as programs: where tensors lie, which instructions become of operations."""
