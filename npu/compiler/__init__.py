# SPDX-License-Identifier: Apache-2.0
"""Compiles quantised models to microcode programs and parameter streams.

A further decoder is one file beside gpt2.py: it emits instructions through `ProgramBuilder`, places
its tensors with `place` and lays out its shares with the functions of `stream`.
"""

from npu.compiler.account import Piece, overhead, pieces
from npu.compiler.builder import CompiledBlock, CompileError, ProgramBuilder
from npu.compiler.gpt2 import compile_block
from npu.compiler.pack import Pack, PackError, pack, unpack
from npu.compiler.stream import Share, Stream
from npu.compiler.tensors import MissingTensorError, TensorRef, collect

__all__ = [
    "CompileError",
    "CompiledBlock",
    "MissingTensorError",
    "Pack",
    "PackError",
    "Piece",
    "ProgramBuilder",
    "Share",
    "Stream",
    "TensorRef",
    "collect",
    "compile_block",
    "overhead",
    "pack",
    "pieces",
    "unpack",
]
