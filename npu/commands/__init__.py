# SPDX-License-Identifier: Apache-2.0
"""What commands are made of, and those commands of `npu` that need no chip."""
