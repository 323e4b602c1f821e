# SPDX-License-Identifier: Apache-2.0
"""Compiles quantised models to microcode programs and parameter streams.

`compile_model` takes any decoder that weights.model can describe; `compile_block` one GPT-2 block.
A program is emitted through `ProgramBuilder`, which checks every instruction and adds the barriers.
"""

from npu.compiler.cache_layout import CacheLayout
from npu.compiler.compiled_block import CompiledBlock, compile_block
from npu.compiler.errors import CompileError
from npu.compiler.model import CompiledModel, CompiledProgram, compile_model
from npu.compiler.model_plan import ModelPlan, plan_model
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.shape import Shape
from npu.compiler.stream import StreamWriter
from npu.compiler.stream_account import Piece, Traffic, overhead, pieces, traffic
from npu.compiler.tensor_map import MissingTensorError, TensorRef, collect
from npu.image import Pack, PackError, StreamShare, pack, unpack

__all__ = [
    "CacheLayout",
    "CompileError",
    "CompiledBlock",
    "CompiledModel",
    "CompiledProgram",
    "MissingTensorError",
    "ModelPlan",
    "Pack",
    "PackError",
    "Piece",
    "ProgramBuilder",
    "Shape",
    "StreamShare",
    "StreamWriter",
    "TensorRef",
    "Traffic",
    "collect",
    "compile_block",
    "compile_model",
    "overhead",
    "pack",
    "pieces",
    "plan_model",
    "traffic",
    "unpack",
]
