# SPDX-License-Identifier: Apache-2.0
"""All registers as one address map, and what generators of others make of it: IP-XACT, UVM."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from peakrdl_ipxact import IPXACTExporter
from peakrdl_ipxact.exporter import Standard
from peakrdl_regblock.udps import ALL_UDPS
from peakrdl_uvm import UVMExporter
from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode

from dev.ip.top_ports import CLOCK, INTERRUPT, RESET, WRAPPER, TopPort
from spec.regs import source

MAP = "tessera_regs"
NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_BUS = {
    "m_axi": ("amba.com", "AMBA4", "AXI4", "r0p0_0"),
    "s_axil": ("amba.com", "AMBA4", "AXI4-Lite", "r0p0_0"),
    CLOCK: ("xilinx.com", "signal", "clock", "1.0"),
    RESET: ("xilinx.com", "signal", "reset", "1.0"),
    INTERRUPT: ("xilinx.com", "signal", "interrupt", "1.0"),
}
"""Vendor, library, name and version of the definition of each bus interface."""
_SIGNAL = {CLOCK: "CLK", RESET: "RST", INTERRUPT: "INTERRUPT"}
_PARAMETERS = {
    CLOCK: {"ASSOCIATED_BUSIF": "s_axil:m_axi", "ASSOCIATED_RESET": RESET},
    RESET: {"POLARITY": "ACTIVE_LOW"},
    INTERRUPT: {"SENSITIVITY": "LEVEL_HIGH"},
}


def top_map() -> str:
    """Return SystemRDL that puts the windows at their places."""
    windows = "".join(
        f"  {module} {key.upper()} @ 0x{base:03X};\n" for key, module, base in source.WINDOWS
    )
    return f"// SPDX-License-Identifier: Apache-2.0\naddrmap {MAP} {{\n{windows}}};\n"


def compiled() -> AddrmapNode:
    """Return the elaborated map of all windows."""
    compiler = RDLCompiler()
    for udp in ALL_UDPS:
        compiler.register_udp(udp, soft=False)
    for _, module, _ in source.WINDOWS:
        compiler.compile_file(str(source.HERE / f"{module}.rdl"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{MAP}.rdl"
        file.write_text(top_map(), encoding="utf-8")
        compiler.compile_file(str(file))
    return compiler.elaborate(top_def_name=MAP).top


def _exported(name: str, export: Callable[[str], object]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        export(str(file))
        return file.read_text(encoding="utf-8")


# -------------------------------------------------------------------------------------------------
# UVM
# -------------------------------------------------------------------------------------------------
def uvm(header: str) -> str:
    """Return the register model for UVM.

    UVM reports fields of a register that share bits as an error. Here one that is only written
    may lie over one that is only read, such as START over BUSY: the model leaves out the former,
    whose bits are written through the register.

    Args:
        header: lines that it begins with.
    """
    text = _exported(f"{MAP}_uvm_pkg.sv", lambda path: UVMExporter().export(compiled(), path))
    classes = re.split(r"(?=^ *class )", text, flags=re.M)
    return header + "".join(map(_without_shared, classes))


_CONFIGURE = re.compile(r'this\.(\w+)\.configure\(this, (\d+), (\d+), "(\w+)"')


def _without_shared(text: str) -> str:
    """Return a class of the model without fields that are only written and share bits."""
    fields = [
        (name, ((1 << int(width)) - 1) << int(lsb), access)
        for name, width, lsb, access in _CONFIGURE.findall(text)
    ]
    for name, bits, access in fields:
        if access.startswith("WO") and any(bits & b for n, b, _ in fields if n != name):
            text = re.sub(rf"^.*\b(uvm_reg_field {name};|this\.{name}\b.*)\n", "", text, flags=re.M)
    return text


# -------------------------------------------------------------------------------------------------
# IP-XACT
# -------------------------------------------------------------------------------------------------
def ipxact(
    header: str, chip: str, version: str, ports: tuple[TopPort, ...], files: list[str]
) -> str:
    """Return the description of the wrapper: bus interfaces, registers, ports, files.

    Args:
        header: text of its first comment.
        chip: name of the configuration.
        version: of the archive.
        ports: of the wrapper.
        files: of the design, in their order.
    """
    exporter = IPXACTExporter(
        vendor="tessera", library="npu", version=version, standard=Standard.IEEE_1685_2014
    )
    name = f"{WRAPPER}-{chip}"
    text = _exported(
        "component.xml", lambda path: exporter.export(compiled(), path, component_name=name)
    )
    ElementTree.register_namespace("ipxact", NAMESPACE)
    root = ElementTree.fromstring(text)
    # The order of the elements is that of the schema.
    place = next(i for i, each in enumerate(root) if each.tag == _tag("memoryMaps"))
    root.insert(place, _bus_interfaces(ports))
    root.insert(place + 1, _address_spaces())
    behind = place + 3
    root.insert(behind, _model(ports))
    root.insert(behind + 1, _file_sets(files))
    root.insert(0, ElementTree.Comment(f" {header} "))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode") + "\n"


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _element(
    tag: str, /, *children: ElementTree.Element, text: str | None = None, **attributes: str
) -> ElementTree.Element:
    made = ElementTree.Element(_tag(tag), attributes)
    made.text = text
    made.extend(children)
    return made


def _text(name: str, text: object) -> ElementTree.Element:
    return _element(name, text=str(text))


def _reference(tag: str, words: tuple[str, str, str, str], suffix: str = "") -> ElementTree.Element:
    vendor, library, of, version = words
    return _element(tag, vendor=vendor, library=library, name=of + suffix, version=version)


def logical(port: str, bus: str) -> str:
    """Return the name of a port in the definition of its bus."""
    return _SIGNAL.get(bus) or port.removeprefix(f"{bus}_").upper()


def _bus_interfaces(ports: tuple[TopPort, ...]) -> ElementTree.Element:
    made = []
    for bus, definition in _BUS.items():
        mine = [port.name for port in ports if port.name == bus or port.name.startswith(f"{bus}_")]
        maps = [
            _element(
                "portMap",
                _element("logicalPort", _text("name", logical(name, bus))),
                _element("physicalPort", _text("name", name)),
            )
            for name in mine
        ]
        if bus == "m_axi":
            mode = _element("master", _element("addressSpaceRef", addressSpaceRef=bus))
        elif bus == INTERRUPT:
            mode = _element("master")
        else:
            inner = [_element("memoryMapRef", memoryMapRef=MAP)] if bus == "s_axil" else []
            mode = _element("slave", *inner)
        parameters = [
            _element(
                "parameter", _text("name", name), _text("value", value), parameterId=f"{bus}_{name}"
            )
            for name, value in _PARAMETERS.get(bus, {}).items()
        ]
        made.append(
            _element(
                "busInterface",
                _text("name", bus),
                _reference("busType", definition),
                _element(
                    "abstractionTypes",
                    _element(
                        "abstractionType",
                        _reference("abstractionRef", definition, "_rtl"),
                        _element("portMaps", *maps),
                    ),
                ),
                mode,
                *([_element("parameters", *parameters)] if parameters else []),
            )
        )
    return _element("busInterfaces", *made)


def _address_spaces() -> ElementTree.Element:
    space = _element(
        "addressSpace", _text("name", "m_axi"), _text("range", "'h100000000"), _text("width", 128)
    )
    return _element("addressSpaces", space)


def _model(ports: tuple[TopPort, ...]) -> ElementTree.Element:
    def wire(port: TopPort) -> ElementTree.Element:
        vector = _element("vector", _text("left", port.width - 1), _text("right", 0))
        vectors = [_element("vectors", vector)] if port.width > 1 else []
        direction = _text("direction", "in" if port.is_input else "out")
        return _element("port", _text("name", port.name), _element("wire", direction, *vectors))

    view = _element(
        "view", _text("name", "rtl"), _text("componentInstantiationRef", "rtl_instance")
    )
    instance = _element(
        "componentInstantiation",
        _text("name", "rtl_instance"),
        _text("language", "verilog"),
        _text("moduleName", WRAPPER),
        _element("fileSetRef", _text("localName", "rtl")),
    )
    return _element(
        "model",
        _element("views", view),
        _element("instantiations", instance),
        _element("ports", *map(wire, ports)),
    )


def _file_sets(files: list[str]) -> ElementTree.Element:
    made = [
        _element(
            "file",
            _text("name", name),
            _text("fileType", "verilogSource" if name.endswith(".v") else "systemVerilogSource"),
        )
        for name in files
    ]
    return _element("fileSets", _element("fileSet", _text("name", "rtl"), *made))
