# SPDX-License-Identifier: Apache-2.0
"""`make regress`: tasks of a tier, run on this machine or a cluster, results in a database."""
