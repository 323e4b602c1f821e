# SPDX-License-Identifier: Apache-2.0
"""`python -m npu.cli`."""

import sys

from npu.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
