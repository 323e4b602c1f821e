# SPDX-License-Identifier: Apache-2.0
"""What a host links to use the chip; it knows neither simulator nor model of it."""
