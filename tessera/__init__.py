# SPDX-License-Identifier: Apache-2.0
"""Networks on the chip, as a user of Python sees them."""
