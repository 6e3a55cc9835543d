"""The console: a page, its modules and styles, which are files of the package.

They contain no data, so no token is needed to read them. The page works offline, and its content
security policy allows the browser to load only these files.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from spaseq.parser.keywords import FAMILIES
from spaseq.parser.lalr import tables
from spaseq.server import context

FOLDER = Path(__file__).with_name("console")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class _Files(StaticFiles):
    """The files, each with the policy; browsers check whether they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response


async def language(request: Request) -> Response:
    """The words of the query language, for editors."""
    context.allow(request, "read")
    called = {*FAMILIES["BUILTIN"], *FAMILIES["AGGREGATE"]}
    words = {*tables().keywords, *FAMILIES["EMIT_MODE"], *FAMILIES["TIME_UNIT"]}
    shown = {"keywords": words, "functions": called}
    return JSONResponse({k: sorted(w for w in v if w.isidentifier()) for k, v in shown.items()})


ROUTES: list[BaseRoute] = [Route("/v1/language", language, methods=["GET"])]
PAGES: list[BaseRoute] = [Mount("/", _Files(directory=FOLDER, html=True))]
"""The route after all other routes."""
