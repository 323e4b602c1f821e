# SPDX-License-Identifier: Apache-2.0
"""A C++ model of what the coprocessor's exp, GELU and roots compute; sweeps over all inputs."""
