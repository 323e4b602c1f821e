# SPDX-License-Identifier: Apache-2.0
"""The page of all reports: `make report` writes build/reports/index.html, one file by itself."""
