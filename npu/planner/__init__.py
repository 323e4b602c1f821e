# SPDX-License-Identifier: Apache-2.0
"""Makes plans: of networks of other frameworks, and of decoders."""
