# SPDX-License-Identifier: Apache-2.0
"""Small models that programs of firmware/examples compute with the coprocessor's instructions.

They are trained here, lie in weights/firmware/checkpoints, and become C arrays when a program is
built (weights.firmware.export).
"""
