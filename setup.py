"""Builds the extension modules, one for every ``.pyx`` file under ``spaseq/``.

A module includes its parts, the ``.pxi`` files of the folder of its name.

This needs code rather than pyproject.toml, because the modules are found by a glob, Cython's
utility code is compiled once (into ``spaseq._cyutility``) rather than into each module, and the
build uses all cores (docs/decisions/0011-setup-py.md).

The environment variable ``SPASEQ_BUILD`` selects the build:

- ``release`` (the default): optimised, without assertions and debug information;
- ``debug``: lightly optimised, with assertions and debug information, for sanitizers and debuggers;
- ``probes``: only the module through which tests reach the parts of the automaton, which is no part
  of the package;
- ``none``: no extension modules, for an editable install whose modules are built in place
  afterwards (``python setup.py build_ext --inplace``, which is incremental).
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

FLAGS = {
    # The inner loop of the automaton is one function only where its helpers are inlined. With them
    # inlined, -O3 makes no workload faster than -O2 does, and takes gcc a sixth longer.
    "release": ["-O2", "-g0", "-DCYTHON_WITHOUT_ASSERTIONS", "--param=max-inline-insns-single=600"],
    "debug": ["-O1", "-g"],
}
if sys.platform == "win32":
    FLAGS = {"release": ["-DCYTHON_WITHOUT_ASSERTIONS"], "debug": ["/Z7"]}
# Symbols that only a debugger reads are a sixth of a module.
LINK_FLAGS = {"release": ["-Wl,-s"] if sys.platform == "linux" else [], "debug": []}
UTILITY_MODULE = "spaseq._cyutility"
UTILITY_SOURCE = Path("spaseq/_cyutility.c")
TRANSLATED = Path("spaseq/_translated.sha256")
"""In an sdist: the hash of the sources from which its C files were made."""


def extensions(build: str) -> list[Extension]:
    """One extension for each ``.pyx`` file, and the shared utility module.

    The largest modules are compiled first, so that the parallel build ends evenly.
    """
    if build == "none":
        return []
    if build == "probes":
        return [
            Extension(
                "tests.core_probes", ["tests/core_probes.pyx"], extra_compile_args=FLAGS["release"]
            )
        ]
    sources = sorted(Path("spaseq").rglob("*.pyx"), key=lambda path: -size_with_parts(path))
    names = [".".join(path.with_suffix("").parts) for path in sources]
    return [
        Extension(
            name, [str(path)], extra_compile_args=FLAGS[build], extra_link_args=LINK_FLAGS[build]
        )
        for name, path in zip([UTILITY_MODULE, *names], [UTILITY_SOURCE, *sources], strict=True)
    ]


def size_with_parts(module: Path) -> int:
    """The bytes of a ``.pyx`` file and of the parts that it includes."""
    parts = module.with_name(module.stem.removeprefix("_")).glob("*.pxi")
    return sum(path.stat().st_size for path in (module, *parts))


def sources_hash() -> str:
    """The hash of all ``.pyx``, ``.pxi`` and ``.pxd`` files."""
    found = hashlib.sha256()
    for path in sorted(Path("spaseq").rglob("*.px[dix]")):
        found.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def translate(modules: list[Extension]) -> list[Extension]:
    """The extensions with C sources, regenerated if a source has changed.

    In an sdist the times of files say nothing: those of Cython's own declarations are later than
    those of the C files, wherever Cython has just been installed. There the hash decides.
    """
    if TRANSLATED.exists() and TRANSLATED.read_text().strip() == sources_hash():
        for module in modules:
            module.sources = [str(Path(source).with_suffix(".c")) for source in module.sources]
        return modules
    from Cython.Build import cythonize

    if not UTILITY_SOURCE.exists():
        command = [sys.executable, "-m", "cython", f"--generate-shared={UTILITY_SOURCE}"]
        subprocess.run(command, check=True)
    return cythonize(
        modules,
        nthreads=os.cpu_count() or 1,
        language_level=3,
        # The modules do without the interpreter's lock (docs/architecture.md, "Threads").
        # No object of the core is pickled: state is saved as data. Its functions are not bound, but
        # `help` and stubtest know their parameters. C has no copy of the source as comments.
        compiler_directives={
            "freethreading_compatible": True,
            "auto_pickle": False,
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
            "emit_code_comments": False,
        },
        shared_utility_qualified_name=UTILITY_MODULE,
        show_all_warnings=False,
    )


def use_clang(compiler: Any, modules: list[Extension]) -> None:
    """Compile with clang-cl in place of MSVC, which has no integers of 128 bits.

    Their division is a function of Clang's runtime library, which MSVC's linker does not know.
    """
    clang_cl = shutil.which("clang-cl")
    if clang_cl is None:
        raise SystemExit(
            "spaseq needs clang-cl on Windows: install LLVM, or the component 'C++ Clang tools for "
            "Windows' of Visual Studio"
        )
    compiler.initialize()
    compiler.cc = clang_cl
    command = [str(Path(clang_cl).with_name("clang")), "--rtlib=compiler-rt"]
    command.append("-print-libgcc-file-name")
    library = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    for module in modules:
        module.extra_link_args = [*module.extra_link_args, library]


class ParallelBuild(build_ext):
    """``build_ext`` that translates first and compiles on all cores."""

    def finalize_options(self) -> None:
        if self.distribution.ext_modules:
            self.distribution.ext_modules = translate(self.distribution.ext_modules)
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":
            use_clang(self.compiler, self.extensions)
        super().build_extensions()


class SourcesWithC(sdist):
    """``sdist`` that includes the C files, so that building from it needs no translation."""

    def run(self) -> None:
        TRANSLATED.unlink(missing_ok=True)
        translate(self.distribution.ext_modules)
        TRANSLATED.write_text(sources_hash() + "\n")
        try:
            super().run()
        finally:
            TRANSLATED.unlink()


# Processes that translate import this file, unless they are forked (Linux up to Python 3.13).
if __name__ == "__main__":
    setup(
        ext_modules=extensions(os.environ.get("SPASEQ_BUILD", "release")),
        cmdclass={"build_ext": ParallelBuild, "sdist": SourcesWithC},
    )
