"""Builds the extension modules, one for every ``.pyx`` file under ``spaseq/``.

This needs code rather than pyproject.toml, because the modules are found by a glob, Cython's
utility code is compiled once (into ``spaseq._cyutility``) rather than into each module, and the
build uses all cores (docs/decisions/0011-setup-py.md).

The environment variable ``SPASEQ_BUILD`` selects the build:

- ``release`` (the default): optimised, without assertions and debug information;
- ``debug``: lightly optimised, with assertions and debug information, for sanitizers and debuggers;
- ``none``: no extension modules, for an editable install whose modules are built in place
  afterwards (``python setup.py build_ext --inplace``, which is incremental).
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

FLAGS = {
    # The inner loop of the automaton is one function only where its helpers are inlined. With them
    # inlined, -O3 makes no workload faster than -O2 does, and takes gcc a sixth longer.
    "release": ["-O2", "-g0", "-DCYTHON_WITHOUT_ASSERTIONS", "--param=max-inline-insns-single=600"],
    "debug": ["-O1", "-g"],
}
# Symbols that only a debugger reads are a sixth of a module.
LINK_FLAGS = {"release": ["-Wl,-s"] if sys.platform == "linux" else [], "debug": []}
UTILITY_MODULE = "spaseq._cyutility"
UTILITY_SOURCE = Path("spaseq/_cyutility.c")
TRANSLATED = Path("spaseq/_translated.sha256")
"""In an sdist: the hash of the sources from which its C files were made."""


def extensions(build: str) -> list[Extension]:
    """One extension for each ``.pyx`` file, and the shared utility module.

    The largest files are compiled first, so that the parallel build ends evenly.
    """
    if build == "none":
        return []
    sources = sorted(Path("spaseq").rglob("*.pyx"), key=lambda path: -path.stat().st_size)
    names = [".".join(path.with_suffix("").parts) for path in sources]
    return [
        Extension(
            name, [str(path)], extra_compile_args=FLAGS[build], extra_link_args=LINK_FLAGS[build]
        )
        for name, path in zip([UTILITY_MODULE, *names], [UTILITY_SOURCE, *sources], strict=True)
    ]


def sources_hash() -> str:
    """The hash of all ``.pyx`` and ``.pxd`` files."""
    found = hashlib.sha256()
    for path in sorted([*Path("spaseq").rglob("*.pyx"), *Path("spaseq").rglob("*.pxd")]):
        found.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def translate(modules: list[Extension]) -> list[Extension]:
    """The extensions with C sources, regenerated if a ``.pyx`` or ``.pxd`` file has changed.

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
        compiler_directives={"freethreading_compatible": True},
        shared_utility_qualified_name=UTILITY_MODULE,
        show_all_warnings=False,
    )


class ParallelBuild(build_ext):
    """``build_ext`` that translates first and compiles on all cores."""

    def finalize_options(self) -> None:
        if self.distribution.ext_modules:
            self.distribution.ext_modules = translate(self.distribution.ext_modules)
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()


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
