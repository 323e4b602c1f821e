# SPDX-License-Identifier: Apache-2.0
"""A text of 256 bytes in the manner of the training text, written for tests and demonstrations.

On its first 1, 5, 16 and 128 bytes every tensor of every block of the shipped checkpoint takes
many values and none saturates (tests/python/weights/test_weights_checkpoint.py).
"""

SAMPLE_TEXT = b"""Return the sum of two numbers as a new object.

If the argument is not a string, raise a TypeError. The default value is None, and the
optional arguments are the name of the file and the mode in which it is opened; with no
name the standard input is read.
"""
