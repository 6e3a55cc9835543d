"""A SPARQL server made of rdflib-endpoint, to be run as a process of its own.

    python rdflib_server.py PORT FOLDER

Each file `n.nt` of the folder is an endpoint of its own, at `/n/`.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import rdflib
import uvicorn
from fastapi import FastAPI
from rdflib_endpoint import SparqlEndpoint


def main(port: int, folder: Path) -> None:
    logging.disable()  # values that rdflib cannot convert are kept, with many words
    app = FastAPI()
    for path in sorted(folder.glob("*.nt")):
        graph = rdflib.Dataset(default_union=True)
        graph.parse(path, format="nt")
        app.mount(f"/{path.stem}", SparqlEndpoint(graph=graph))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
