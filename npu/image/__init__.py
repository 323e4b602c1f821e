# SPDX-License-Identifier: Apache-2.0
"""What lies in memory beside programs: the shares of the stream, and packed files."""

from npu.image.packed_file import MAGIC, Pack, PackError, pack, pieces_of_pack, unpack
from npu.image.share import PIECE, StreamShare

__all__ = ["MAGIC", "PIECE", "Pack", "PackError", "StreamShare", "pack", "pieces_of_pack", "unpack"]
