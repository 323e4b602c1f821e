# SPDX-License-Identifier: Apache-2.0
"""Reads ONNX: operators of versions 7 to 28, and those of before, brought to a form of these.

What no mapping knows becomes a host operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from npu.graph.build import Builder
from npu.graph.form import Array, Element, Graph, GraphError, Tensor, TensorType
from npu.graph.importers import (
    dialect_former,
    dialect_microsoft,
    dialect_microsoft_integers,
    dialect_pulp,
    dialect_quantisers,
    onnx_attention,
    onnx_elementwise,
    onnx_linear,
    onnx_moves,
    onnx_quantised,
    onnx_rows,
    onnx_windows,
)
from npu.graph.importers.onnx_dialects import (
    DIALECTS,
    VERSION,
    Adding,
    Entry,
    expand,
    refusal,
)
from npu.graph.importers.onnx_first_versions import brought_forward
from npu.graph.importers.onnx_host import infer_outputs, payload, run_payload
from npu.graph.importers.onnx_inputs import input_type, sizes_by_name
from npu.graph.importers.onnx_load import (
    array,
    dense,
    load,
    needs,
    node_name,
    opset,
    standard,
    version_of,
)
from npu.graph.importers.onnx_loops import decided, unrolled
from npu.graph.importers.onnx_node import (
    FIRST_MAPPED,
    MAPPINGS,
    OWN_DOMAIN,
    Mapping_,
    Node,
    mapping_of,
)
from npu.graph.importers.onnx_other_forms import other_form
from npu.graph.importers.unmapped import UnmappedError

GROUPS = (
    onnx_attention,
    onnx_elementwise,
    onnx_linear,
    onnx_moves,
    onnx_quantised,
    onnx_rows,
    onnx_windows,
)
LANGUAGES = (
    dialect_former,
    dialect_microsoft,
    dialect_microsoft_integers,
    dialect_pulp,
    dialect_quantisers,
)
# What these make is different each time, or stays visible as a border.
_NEVER_FOLDED = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Multinomial", "Bernoulli", "Dropout", "QuantizeLinear", "DequantizeLinear"),
    }
)
# What the graphs inside them compute stands in their place where it is known which, and how often.
_INSIDE = {"Loop": unrolled, "If": decided}
# What they make has the type of an input.
_TYPED = ("QuantizeLinear", "CastLike")
_LARGEST = 1 << 31
_FEW_BITS: Mapping[str, type[np.integer]] = {
    **dict.fromkeys(("int4", "int2"), np.int8),
    **dict.fromkeys(("uint4", "uint2"), np.uint8),
}
"""Types of constants that a graph holds in bytes."""
# What Python and numpy raise for attributes of other types and numbers without sense.
_MALFORMED = (
    *(ArithmeticError, AttributeError, IndexError, KeyError, MemoryError, TypeError, ValueError),
)


def read(
    source: Any,  # noqa: ANN401
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Graph:
    """Read an ONNX model.

    Args:
        source: a path, bytes or a `ModelProto`.
        shapes: of inputs with free dimensions, by name.
        constants: values of inputs that are to be constant, by name.

    Returns:
        The graph with the names of the file; images are turned to NHWC by transposes around
        each operation.

    Raises:
        GraphError: naming the file, the operation and the tensor.
    """
    model, file = load(source)
    try:
        return _Import(model, shapes or {}, constants or {}).graph()
    except GraphError as error:
        raise GraphError(f"{file}: {error}") from None


class _Import:
    """A model on its way into a graph."""

    def __init__(
        self,
        model: onnx.ModelProto,
        shapes: Mapping[str, tuple[int, ...]],
        constants: Mapping[str, Array],
    ) -> None:
        self.model = model
        self.build = Builder(model.graph.name or "onnx")
        self.version = opset(model)
        self.shapes = shapes
        self.constants = constants
        self.read: set[str] = set()
        self.few_bits: dict[str, str] = {}
        self.pulp = dialect_pulp.is_pulp(model)
        infos = (*model.graph.value_info, *model.graph.output)
        self.declared = {info.name: info.type for info in infos}

    def graph(self) -> Graph:
        source = self.model.graph
        self.read.update(one.name for one in source.output)
        for node in source.node:
            self.read.update(needs(node))
        self.build.reserve(
            dict.fromkeys(
                [
                    *(one.name for one in (*source.input, *source.initializer)),
                    *(one.values.name for one in source.sparse_initializer),
                    *(name for node in source.node for name in node.output if name),
                ]
            )
        )
        self._weights()
        self._inputs()
        for node in source.node:
            try:
                self._node(node)
            except GraphError as error:
                raise GraphError(
                    f"operation {node_name(node)!r} ({node.op_type}): {error}"
                ) from None
            except _MALFORMED as error:
                what = " ".join(f"{type(error).__name__}: {error}".split())
                raise GraphError(
                    f"operation {node_name(node)!r} ({node.op_type}): attributes or inputs that "
                    f"the operator does not have: {what}"
                ) from None
        return self.build.finish(self._outputs())

    def _outputs(self) -> list[str]:
        """Return the outputs; one that is named again is the same values under another name."""
        found: list[str] = []
        for one in self.model.graph.output:
            name = one.name
            if name in found:
                kind = self.build.type(name)
                name = self.build.add(
                    "identity", [name], wish=f"{name}.out", source="output", result=kind
                )
            found.append(name)
        return found

    def _weights(self) -> None:
        source = self.model.graph
        for tensor in source.initializer:
            if tensor.name not in self.constants:
                self._constant(tensor.name, array(tensor))
        for sparse in source.sparse_initializer:
            self._constant(sparse.values.name, dense(sparse))

    def _constant(self, name: str, data: Array) -> None:
        """Add a constant under the name that the file gives it."""
        if data.dtype.name in _FEW_BITS:
            self.few_bits[name] = data.dtype.name
            data = data.astype(_FEW_BITS[data.dtype.name])
        if data.dtype.name == "bfloat16":
            data = data.astype(np.float32)
        try:
            element = Element.of(data.dtype)
        except (ValueError, TypeError):
            allowed = ", ".join(Element)
            raise GraphError(f"tensor {name!r} is {data.dtype}, allowed {allowed}") from None
        kept = np.ascontiguousarray(data).reshape(data.shape)
        self.build.declare(Tensor(name, TensorType(data.shape, element), kept))

    def _inputs(self) -> None:
        names = {one.name for one in self.model.graph.input}
        for what, given in (("shape", self.shapes), ("constant", self.constants)):
            for name in given:
                if name not in names:
                    allowed = ", ".join(sorted(names)) or "none"
                    raise GraphError(f"{what} of {name!r}: no such input, allowed {allowed}")
        named = sizes_by_name(self.model.graph.input, self.shapes)
        for one in self.model.graph.input:
            if one.name in self.constants:
                self._constant(one.name, np.asarray(self.constants[one.name]))
            elif one.name not in self.build.tensors:
                self.build.inputs.append(one.name)
                self.build.declare(Tensor(one.name, input_type(one, self.shapes, named)))

    def _node(self, node: onnx.NodeProto) -> None:
        if self.read.isdisjoint(node.output):
            return
        for name in node.input if node.op_type in _TYPED else ():
            if name in self.few_bits:
                raise GraphError(f"it makes {self.few_bits[name]} of {name!r}, allowed from 8 bits")
        domain = standard(node.domain)
        version = version_of(node, self.version)
        if version is not None:
            if not self._exact(node):
                self._standard(node, version)
        elif domain == OWN_DOMAIN:
            self._mapped(
                node, mapping_of(f"{OWN_DOMAIN}.{node.op_type}", FIRST_MAPPED), self.version
            )
        elif (domain, node.op_type) in DIALECTS:
            self._expanded(node, DIALECTS[domain, node.op_type])
        elif domain and onnx.defs.has(node.op_type, domain=domain):
            self._standard(node, self.version)
        else:
            raise GraphError(refusal(node, self.version))

    def _exact(self, node: onnx.NodeProto) -> bool:
        """Read a product as one of integers, if it is one in a network of PULP's tools."""
        if not self.pulp or node.op_type not in dialect_pulp.PRODUCTS:
            return False
        mark = self.build.mark()
        try:
            expand(node, dialect_pulp.exact_product, self.build, self._instead_of(node, VERSION))
        except GraphError:
            self.build.back(mark)
            return False
        return True

    def _expanded(self, node: onnx.NodeProto, entry: Entry) -> None:
        """Put what a node of a dialect computes in its place."""
        expand(node, entry, self.build, self._instead_of(node, VERSION))
        for name in node.output:
            if name in self.read and name not in self.build.tensors:
                raise GraphError(f"result {name!r} is not known")

    def _instead_of(self, node: onnx.NodeProto, version: int) -> Adding:
        """Return what adds nodes of the standard that a node stands for."""

        def add(made: onnx.NodeProto) -> None:
            self.read.update(needs(made), {*made.output} - {*node.output})
            self._standard(made, version)

        return add

    def _standard(self, node: onnx.NodeProto, version: int) -> None:
        if self.read.isdisjoint(node.output):
            return
        if not standard(node.domain):
            node, version = brought_forward(node, version, self.build)
        if self._folded(node, version):
            return
        entry = None if standard(node.domain) else other_form(node, version, self.build)
        if entry is not None:
            self._expanded(node, entry)
            return
        if node.op_type in _INSIDE and not standard(node.domain):
            self._inside(node, version)
            return
        mapping = None if standard(node.domain) else mapping_of(node.op_type, version)
        self._mapped(node, mapping, version)

    def _inside(self, node: onnx.NodeProto, version: int) -> None:
        mark = self.build.mark()
        try:
            _INSIDE[node.op_type](node, self.build, self._instead_of(node, version))
        except (UnmappedError, GraphError) as reason:
            self.build.back(mark)
            self._host(node, list(node.output), str(reason), version)

    def _mapped(self, node: onnx.NodeProto, mapping: Mapping_ | None, version: int) -> None:
        if mapping is None:
            self._host(node, list(node.output), self._why(node, version), version)
            return
        mark = self.build.mark()
        mapped = Node(self.build, node, version, self.read)
        try:
            mapping(mapped)
            mapped.refuse_unread()
        except UnmappedError as reason:
            self.build.back(mark)
            self._host(node, list(node.output), str(reason), version)
            return
        # A result that only the source's own evaluator knows: the operation is split.
        made = self.build.tensors
        left = [name for name in node.output if name in self.read and name not in made]
        if left:
            self._host(node, left, f"side results of {node.op_type}", version)

    def _why(self, node: onnx.NodeProto, version: int) -> str:
        if standard(node.domain):
            return f"operators of domain {node.domain!r} are not mapped"
        if node.op_type in MAPPINGS:
            return f"{node.op_type} of operator set {version} is not mapped"
        return f"{node.op_type} has no counterpart in the table of operations"

    def _folded(self, node: onnx.NodeProto, version: int) -> bool:
        """Compute a node whose inputs are all known."""
        read = needs(node)
        values = [self.build.value(name) for name in read]
        known = [one for one in values if one is not None]
        if len(known) != len(values) or node.op_type in _NEVER_FOLDED:
            return False
        if any(self.build.type(name).quantisation for name in read):
            return False
        if node.op_type == "ConstantOfShape" and int(np.prod(known[0], dtype=object)) > _LARGEST:
            raise GraphError(f"{list(known[0])} elements, allowed {_LARGEST}")
        if node.op_type == "Constant" and node.attribute[0].name == "sparse_value":
            self._constant(node.output[0], dense(node.attribute[0].sparse_tensor))
            return True
        outputs = [name for name in node.output if name in self.read]
        types = {name: self.build.type(name) for name in read}
        try:
            found = run_payload(payload(node, self._imports(version), types, outputs), known)
            for name, value in zip(outputs, found, strict=True):
                self._constant(name, value)
        except GraphError:
            return False
        return True

    def _imports(self, version: int) -> list[onnx.OperatorSetIdProto]:
        """Return the operator sets of the model, with another version of the standard's."""
        others = [one for one in self.model.opset_import if standard(one.domain)]
        return [onnx.helper.make_opsetid("", version), *others]

    def _host(self, node: onnx.NodeProto, outputs: list[str], reason: str, version: int) -> None:
        read = needs(node)
        types = {name: self.build.type(name) for name in read}
        constants = {name: data for name in read if (data := self.build.value(name)) is not None}
        names = [name for name in outputs if name in self.read]
        imports = self._imports(version)
        # What graphs inside a node make has the shapes that the file says, if it says them.
        inside = any(one.HasField("g") for one in node.attribute)
        declared = self.declared if inside else {}
        results = infer_outputs(node, imports, types, constants, names, declared)
        self.build.add_many(
            "host",
            read,
            names,
            results,
            wish=node_name(node),
            source=node.op_type,
            evaluator="onnx",
            operator=node.op_type,
            payload=payload(node, imports, types, names),
            reason=reason,
        )
