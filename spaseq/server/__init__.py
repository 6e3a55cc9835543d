"""`spaseq serve`: one run of many standing queries behind an HTTP API.

Importing the package costs nothing: Starlette and uvicorn (the extra `serve`) are imported by
`spaseq.server.app` and `spaseq.server.serve`.
"""
