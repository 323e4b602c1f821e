# SPDX-License-Identifier: Apache-2.0
"""How checkpoints store their tensors: a module for each kind of file, all of one form."""
