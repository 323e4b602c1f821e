# SPDX-License-Identifier: Apache-2.0
"""Sets up what the tests need: checks the system's tools and fills `.venv`.

Runs on the system's own Python, before anything is installed: standard library only, and syntax
that old Pythons can read, so that they can say that they are too old. The Makefile calls it.

    python3 dev/bootstrap.py [group ...]     optional groups of pyproject.toml, such as graphs
"""

import ctypes.util
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from npu.commands.hard_path import hard_name  # noqa: E402 (found by the line before it)

VENV = os.path.join(ROOT, ".venv")
OLDEST = (3, 11)
ALONE = ("metrics", "published", "sentences")
"""Groups whose packages carry files, or few functions, for tests: what else they need is not."""
TOOLS = (("g++", "g++"), ("make", "make"), ("perl", "perl"), ("git", "git"))


def fail(message):
    # type: (str) -> None
    """Print one line and leave."""
    sys.stderr.write("setup: " + message + "\n")
    sys.exit(2)


def newer_python():
    # type: () -> str | None
    """Return another Python on PATH that is new enough, or None."""
    for minor in (13, 12, 11):
        path = shutil.which("python3.%d" % minor)
        if path is not None:
            return path
    return None


def has_shared_library():
    # type: () -> bool
    """Whether this Python's shared library, which the simulator loads, is installed."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    if ".so" not in name:
        name = "libpython%d.%d.so.1.0" % sys.version_info[:2]
    folders = [sysconfig.get_config_var(key) for key in ("LIBDIR", "LIBPL")]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    if folders[0] and multiarch:
        folders.append(os.path.join(folders[0], multiarch))
    folders.append(os.path.join(sys.base_prefix, "lib"))
    if any(folder and os.path.exists(os.path.join(folder, name)) for folder in folders):
        return True
    return ctypes.util.find_library("python%d.%d" % sys.version_info[:2]) is not None


def check_system():
    # type: () -> None
    """Leave with one line per missing tool, each with the Debian package that has it.

    Or with one line about a place where nothing can be built.
    """
    hard = hard_name(ROOT)
    if hard is not None:
        fail(hard)
    missing = [
        "%s is missing: install the Debian package %s" % (tool, package)
        for tool, package in TOOLS
        if shutil.which(tool) is None
    ]
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append("Python's venv is missing: install the Debian package python3-venv")
    if not has_shared_library():
        missing.append(
            "Python's shared library is missing: install the Debian package libpython3-dev"
        )
    if missing:
        fail("\nsetup: ".join(missing))


def fingerprint():
    # type: () -> str
    """Return what the contents of the environment follow from, whatever groups are in it."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    digest.update(sys.version.encode())
    digest.update(VENV.encode())
    return digest.hexdigest()


def works(python):
    # type: (str) -> bool
    """Whether the environment's interpreter is there and has pip."""
    if not os.path.exists(python):
        return False
    command = [python, "-c", "import pip, sys; sys.exit(sys.version_info[:2] != %r)"]
    command[-1] = command[-1] % (tuple(sys.version_info[:2]),)
    return subprocess.call(command, stderr=subprocess.DEVNULL) == 0


def says(file, text):
    # type: (str, str) -> bool
    """Whether a file is there and holds just this text."""
    if not os.path.exists(file):
        return False
    with open(file) as found:
        return found.read() == text


def requirements(extras):
    # type: (list[str]) -> list[str]
    """Return what groups ask for; leave with one line about names that pyproject.toml lacks."""
    import tomllib  # Python 3.11 has it: not to be asked for before the version is known.

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        groups = tomllib.load(file)["project"]["optional-dependencies"]
    unknown = [extra for extra in extras if extra not in groups]
    if unknown:
        fail("given group %s, allowed are %s" % (", ".join(unknown), ", ".join(sorted(groups))))
    return [one for extra in extras for one in groups[extra]]


def install(extras):
    # type: (list[str]) -> None
    """Make the environment hold this project's pinned packages and those of `extras`."""
    requirements(extras)
    files = requirements([extra for extra in extras if extra in ALONE])
    stamps = [os.path.join(VENV, ".stamp-" + group) for group in ["dev", *extras]]
    wanted = fingerprint()
    if all(says(stamp, wanted) for stamp in stamps):
        return
    python = os.path.join(VENV, "bin", "python")
    if not works(python):
        print("setup: creating .venv", flush=True)
        subprocess.check_call([sys.executable, "-m", "venv", "--clear", VENV])
    code = [extra for extra in extras if extra not in ALONE]
    target = ROOT + "[" + ",".join(["dev", *code]) + "]"
    print("setup: installing the packages that pyproject.toml pins", flush=True)
    command = [
        python,
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "--no-input",
        # Python compiles what is imported, a small part of what is installed.
        "--no-compile",
    ]
    calls = [["--constraint", os.path.join(ROOT, "constraints.txt"), "--editable", target]]
    if files:
        calls.append(["--no-deps", *files])
    for call in calls:
        if subprocess.call([*command, *call]) != 0:
            fail("pip could not install the packages (see above); is there a network?")
    for stamp in stamps:
        with open(stamp, "w") as file:
            file.write(wanted)


def run():
    # type: () -> None
    """Check, install, and leave; silent when nothing is to be done."""
    if sys.version_info < OLDEST:
        other = newer_python()
        if other is None:
            fail(
                "python3 is %d.%d, needed is 3.11 or newer: install the Debian package python3"
                % sys.version_info[:2]
            )
        else:
            os.execv(other, [other, *sys.argv])
    check_system()
    install(sorted(sys.argv[1:]))


def main():
    # type: () -> None
    """Run; say in one line what went wrong."""
    try:
        run()
    except KeyboardInterrupt:
        sys.stderr.write("setup: interrupted\n")
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        fail("%s ended with %d (see above)" % (" ".join(error.cmd), error.returncode))
    except OSError as error:
        fail("%s: %s" % (error.filename or ROOT, error.strerror or error))


if __name__ == "__main__":
    main()
