"""`spaseq serve`: one run of many standing queries behind an HTTP API.

Importing the package costs nothing: Starlette, uvicorn and websockets (the extra `serve`) are
imported by its modules.
"""

from importlib.util import find_spec

from spaseq.errors import SpaseqError


def require_packages() -> None:
    """Check that the extra `serve` is installed, before a module of this package is imported.

    Raises:
        SpaseqError: if one of its packages is missing.
    """
    for name in ("starlette", "uvicorn", "websockets"):
        if find_spec(name) is None:
            raise SpaseqError(f"the server needs the package {name}: pip install 'spaseq[serve]'")
