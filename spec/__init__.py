# SPDX-License-Identifier: Apache-2.0
"""What all else stands on: instruction set, registers, descriptors, formats, configurations."""
