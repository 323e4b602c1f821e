# SPDX-License-Identifier: Apache-2.0
"""What a release of the chip contains, as texts by their names in its folder."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dev import constraints
from dev.ip import registers, smoke, top_ports
from dev.ip.top_ports import SourceError, TopPort
from spec.configurations import ChipParameters
from spec.paths import GENERATED, REGS, ROOT, RTL
from spec.regs import source
from tb.run import sources

TEMPLATES = Path(__file__).with_name("templates")
PERIOD = 20.0
"""ns, of the clock in the constraints; 50 MHz, which an ECP5 takes."""
DELAY = 0.2
"""Share of it that inputs and outputs are late or early."""
SMOKE = "tessera_smoke"
MACHINE = "tessera_machine"
FAST = ("-CFLAGS -O0",)
"""Options of Verilator: the bench is short, so that compiling takes longer than running it."""
HEADERS = tuple(
    ROOT / "firmware" / "include" / name for name in ("npu_regs.h", "npu_descriptors.h")
)
BRINGUP = ROOT / "firmware" / "bringup"
"""The first program of a host."""


@dataclass(frozen=True)
class Release:
    """What is released.

    Attributes:
        chip: its configuration.
        version: of the project.
        commit: of the sources.
    """

    chip: ChipParameters
    version: str
    commit: str

    @property
    def name(self) -> str:
        """Of folder and archive."""
        return f"tessera-{self.chip.name}-{self.version}"

    @property
    def text(self) -> str:
        """Of the file VERSION."""
        return f"{self.version}\ncommit {self.commit}\nconfiguration {self.chip.name}\n"

    def origin(self, source_file: str) -> str:
        """Return the words of a generated file that say where it is from."""
        return f"Generated from {source_file} by `make ip CONFIG={self.chip.name}`; do not edit."


def version() -> str:
    """Return the version of the project."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def contents(release: Release) -> dict[str, str]:
    """Return the files of a release by their names.

    Raises:
        SourceError: the sources are wrong.
    """
    design = _design(release)
    paths = [*sources.rtl_sources()]
    parameters = [f"-G{name}={value}" for name, value in release.chip.parameters.items()]
    ports = top_ports.of_top(paths, parameters)
    wrapper = top_ports.of_wrapper(ports)
    design["rtl/tessera.v"] = verilog(release, ports, wrapper)
    names = [*design]
    benches = _smoke(release, wrapper)
    bench = {name: text for name, text in benches.items() if name.endswith(".sv")}
    made = {
        **design,
        **benches,
        "tessera.vlt": _waivers(),
        "tessera.f": _list(release, ["tessera.vlt", *names]),
        "sim/smoke.f": _list(release, [*FAST, *bench]),
        "tessera.core": _core(release, names, [*bench]),
        "Bender.yml": _bender(release, names, [*bench]),
        "tessera.xml": registers.ipxact(
            release.origin("spec/regs/*.rdl and rtl/npu_top.sv"),
            release.chip.name,
            release.version,
            wrapper,
            names,
        ),
        "constraints/npu_top.sdc": _constraints(release, ports),
        f"registers/{registers.MAP}_uvm_pkg.sv": registers.uvm(
            f"// SPDX-License-Identifier: Apache-2.0\n// {release.origin('spec/regs/*.rdl')}\n"
        ),
        f"registers/{registers.MAP}.rdl": registers.top_map(),
        "registers/registers.md": (ROOT / "docs/reference/registers.md").read_text("utf-8"),
        "LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8"),
        "VERSION": release.text,
        "README.md": _filled("README.md.j2", release, chip=release.chip, period=PERIOD),
    }
    for path in (*HEADERS, *sorted(BRINGUP.iterdir())):
        made[f"sw/{path.name}"] = path.read_text(encoding="utf-8")
    for _, module, _ in source.WINDOWS:
        made[f"registers/{module}.rdl"] = (REGS / f"{module}.rdl").read_text(encoding="utf-8")
    return made


def with_defaults(text: str, parameters: Mapping[str, int]) -> str:
    """Return `npu_top` with other defaults of its parameters.

    Raises:
        SourceError: it lacks one of them.
    """
    for name, value in parameters.items():
        pattern = rf"^( *parameter (bit|int unsigned) {name} = )[\w']+"

        def default(found: re.Match[str], value: int = value) -> str:
            return f"{found[1]}{f'1{chr(39)}b{value}' if found[2] == 'bit' else value}"

        text, count = re.subn(pattern, default, text, flags=re.M)
        if count != 1:
            raise SourceError(f"npu_top.sv: given parameter {name}, allowed those that it has")
    return text


def _design(release: Release) -> dict[str, str]:
    """Return the sources of the design, in their order."""
    found = {}
    for path in sources.rtl_sources():
        generated = path.is_relative_to(GENERATED)
        inner = Path("gen") / path.relative_to(GENERATED) if generated else path.relative_to(RTL)
        text = path.read_text(encoding="utf-8")
        if path.name == f"{top_ports.TOP}.sv":
            text = with_defaults(text, release.chip.parameters)
        found[str("rtl" / inner)] = text
    return found


def _waivers() -> str:
    """Return the waivers of Verilator, without those of single files that have other places."""
    texts = [path.read_text(encoding="utf-8") for path in sources.waivers()]
    bodies = [text.partition("`verilator_config\n") for text in texts]
    return "`verilator_config\n".join([bodies[0][0], "".join(body for _, _, body in bodies)])


def _filled(template: str, release: Release, **values: object) -> str:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    origin = release.origin(f"dev/ip/templates/{template}")
    filled = environment.get_template(template).render(origin=origin, release=release, **values)
    return re.sub(r"[ \t]+$", "", filled, flags=re.M)


def verilog(release: Release, ports: Sequence[TopPort], wrapper: Sequence[TopPort]) -> str:
    """Return the wrapper; ports of the top that it lacks are tied to 0."""
    connected = {port.inner for port in wrapper}
    tied = [port for port in ports if port.name not in connected]
    return _filled("tessera.v.j2", release, ports=wrapper, tied=tied)


def _smoke(release: Release, wrapper: Sequence[TopPort]) -> dict[str, str]:
    """Return the bench, and its program for C."""
    host = [port for port in wrapper if not port.name.startswith("m_axi_")]
    memory = [port for port in wrapper if port.name.startswith("m_axi_")]
    values = {"host": host, "memory": memory, **smoke.words(release.chip)}
    names = [f"sim/{name}.sv" for name in ("tessera_memory", MACHINE, SMOKE)]
    names.append("sw/npu_smoke_program.h")
    return {name: _filled(f"{Path(name).name}.j2", release, **values) for name in names}


def _list(release: Release, names: Sequence[str]) -> str:
    lines = [f"// {release.origin('rtl')}", "// Paths begin at the folder of README.md.", *names]
    return "\n".join([*lines, ""])


def _constraints(release: Release, ports: Sequence[TopPort]) -> str:
    def collection(*, inputs: bool) -> str:
        names = [port.name for port in ports if port.is_input == inputs]
        others = [name for name in names if name not in ("clk_i", "rst_ni")]
        return f"[get_ports {{{' '.join(f'{name}*' for name in others)}}}]"

    text = constraints.sdc(
        "$period",
        "$delay",
        "$delay",
        inputs=collection(inputs=True),
        outputs=collection(inputs=False),
    )
    return (
        "# SPDX-License-Identifier: Apache-2.0\n"
        f"# {release.origin('dev/constraints.py')}\n"
        "# For npu_top alone, in ns: the flow of `make timing`. Change period and delay.\n"
        f"set period {PERIOD}\n"
        f"set delay [expr {DELAY} * $period]\n{text}"
    )


def _core(release: Release, design: Sequence[str], bench: Sequence[str]) -> str:
    """Return the core of FuseSoC."""

    def files(names: Sequence[str]) -> list[object]:
        kinds = {".sv": "systemVerilogSource", ".v": "verilogSource2005", ".vlt": "vlt"}
        return [{name: {"file_type": kinds[Path(name).suffix]}} for name in names]

    verilator = {"mode": "binary", "verilator_options": ["--timing", *FAST]}
    core = {
        "name": f"tessera:npu:tessera-{release.chip.name}:{release.version}",
        "description": f"Tessera, a transformer NPU: {release.chip.text}",
        "filesets": {
            "rtl": {"files": files(["tessera.vlt", *design])},
            "sim": {"files": files(bench)},
            "constraints": {"files": [{"constraints/npu_top.sdc": {"file_type": "SDC"}}]},
        },
        "targets": {
            "default": {"filesets": ["rtl"], "toplevel": top_ports.WRAPPER},
            "npu_top": {"filesets": ["rtl", "constraints"], "toplevel": top_ports.TOP},
            "smoke": {
                "filesets": ["rtl", "sim"],
                "toplevel": SMOKE,
                "flow": "sim",
                "flow_options": {"tool": "verilator", **verilator},
            },
        },
    }
    head = f"CAPI=2:\n# SPDX-License-Identifier: Apache-2.0\n# {release.origin('rtl')}\n"
    return f"{head}{yaml.safe_dump(core, sort_keys=False, width=100)}"


def _bender(release: Release, design: Sequence[str], bench: Sequence[str]) -> str:
    manifest = {
        "package": {"name": f"tessera-{release.chip.name}", "authors": ["The Tessera authors"]},
        "sources": [*design, {"target": "simulation", "files": [*bench]}],
    }
    head = f"# SPDX-License-Identifier: Apache-2.0\n# {release.origin('rtl')}\n"
    return f"{head}{yaml.safe_dump(manifest, sort_keys=False, width=100)}"
