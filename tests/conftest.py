# SPDX-License-Identifier: Apache-2.0
"""How tests run: NumPy multiplies in one thread, hypothesis draws the same cases in every run.

A failure of hypothesis is shrunk and says its repro. Products as small as those of the tests are
slower when they are spread over threads, and pytest has a process for every processor already; it
counts when NumPy is loaded, which is after this.
"""

import os

from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("project", derandomize=True, deadline=None, database=None)
settings.load_profile("project")
