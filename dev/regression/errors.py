# SPDX-License-Identifier: Apache-2.0
"""The error of a cluster, known where the packages of clusters are not installed."""


class ClusterError(RuntimeError):
    """The cluster cannot run the regression; the text says why and what to do."""
