# SPDX-License-Identifier: Apache-2.0
"""What a test holds in its hands inside the simulator: host, memory, monitors, scoreboard."""
