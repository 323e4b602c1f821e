# SPDX-License-Identifier: Apache-2.0
"""`make bench`: what the chip takes for known work, against what bus and array would allow."""
