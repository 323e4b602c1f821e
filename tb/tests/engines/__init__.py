# SPDX-License-Identifier: Apache-2.0
"""Engines, each by its instructions."""
