"""Builds the extension modules: every ``.pyx`` file under ``spaseq/`` is one.

pyproject.toml cannot say how: the modules are found rather than listed, Cython's utility code is
compiled once (into ``spaseq._cyutility``) rather than into each of them, and all cores take part.

``SPASEQ_BUILD=debug`` builds with assertions, debug information and light optimisation, for
sanitizers and debuggers.
"""

import os
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

UTILITY_MODULE = "spaseq._cyutility"
UTILITY_SOURCE = Path("spaseq/_cyutility.c")
RELEASE_FLAGS = ["-O3", "-g0", "-DCYTHON_WITHOUT_ASSERTIONS"]
DEBUG_FLAGS = ["-O1", "-g"]


def extensions() -> list[Extension]:
    """One extension for each ``.pyx`` file, and the one that they share."""
    flags = DEBUG_FLAGS if os.environ.get("SPASEQ_BUILD") == "debug" else RELEASE_FLAGS
    names = {source: ".".join(source.with_suffix("").parts) for source in sources()}
    return [
        Extension(UTILITY_MODULE, [str(UTILITY_SOURCE)], extra_compile_args=flags),
        *(Extension(name, [str(path)], extra_compile_args=flags) for path, name in names.items()),
    ]


def sources() -> list[Path]:
    """The ``.pyx`` files, the largest first: the last one to finish is then a small one."""
    return sorted(Path("spaseq").rglob("*.pyx"), key=lambda path: -path.stat().st_size)


def translated(modules: list[Extension]) -> list[Extension]:
    """The extensions with C sources, translated where a ``.pyx`` or ``.pxd`` file has changed."""
    if not UTILITY_SOURCE.exists():
        command = [sys.executable, "-m", "cython", f"--generate-shared={UTILITY_SOURCE}"]
        subprocess.run(command, check=True)
    return cythonize(
        modules,
        nthreads=os.cpu_count() or 1,
        language_level=3,
        shared_utility_qualified_name=UTILITY_MODULE,
    )


class ParallelBuild(build_ext):
    """``build_ext`` that compiles on all cores unless told otherwise."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()


setup(ext_modules=translated(extensions()), cmdclass={"build_ext": ParallelBuild})
