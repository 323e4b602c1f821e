# SPDX-License-Identifier: Apache-2.0
"""Compiles quantised models to microcode programs and parameter streams.

`compile_model` takes any decoder that weights.model can describe; `compile_block` one GPT-2 block.
A program is emitted through `ProgramBuilder`, which checks every instruction and adds the barriers.
"""

from npu.compiler.account import Piece, Traffic, overhead, pieces, traffic
from npu.compiler.block import CompiledBlock, compile_block
from npu.compiler.builder import ProgramBuilder
from npu.compiler.cache import CacheLayout
from npu.compiler.errors import CompileError
from npu.compiler.model import CompiledModel, CompiledProgram, compile_model
from npu.compiler.pack import Pack, PackError, pack, unpack
from npu.compiler.shape import Shape
from npu.compiler.stream import Share, Stream
from npu.compiler.tensors import MissingTensorError, TensorRef, collect

__all__ = [
    "CacheLayout",
    "CompileError",
    "CompiledBlock",
    "CompiledModel",
    "CompiledProgram",
    "MissingTensorError",
    "Pack",
    "PackError",
    "Piece",
    "ProgramBuilder",
    "Shape",
    "Share",
    "Stream",
    "TensorRef",
    "Traffic",
    "collect",
    "compile_block",
    "compile_model",
    "overhead",
    "pack",
    "pieces",
    "traffic",
    "unpack",
]
