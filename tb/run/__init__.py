# SPDX-License-Identifier: Apache-2.0
"""Around the simulator: builds models, finds and runs tests, reads and draws what runs leave."""
