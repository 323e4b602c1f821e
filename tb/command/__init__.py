# SPDX-License-Identifier: Apache-2.0
"""The command port on the bench: raw descriptors, chip and model side by side, random work."""
