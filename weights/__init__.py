# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, their import, and the quantiser that turns them into integer models.

The package needs numpy and safetensors. Only `weights.train` needs torch.
"""
