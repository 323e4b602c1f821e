# SPDX-License-Identifier: Apache-2.0
"""Networks as typed graphs: the form, the table of operations, importers and passes."""
