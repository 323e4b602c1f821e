# SPDX-License-Identifier: Apache-2.0
"""How hypothesis runs here: the same cases in every run, a failure is shrunk and says its repro."""

from hypothesis import settings

settings.register_profile("project", derandomize=True, deadline=None, database=None)
settings.load_profile("project")
