"""Finished files of Google Cloud Storage and of Azure Blob Storage, from and to their emulators.

Those of S3 are in `test_remote_files.py`.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from servers import free_port, needs, program, started
from session_runs import EACH, values
from test_following import event

from spaseq.cli import main

TEXT = "".join(map(event, range(1, 201)))
AZURE_KEY = "c3Rvcm1zIGFyZSBuYW1lZCBhZnRlciBwZW9wbGU="


@contextmanager
def google(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Any]:
    needs("fsspec", "gcsfs", "gcp_storage_emulator")
    port = free_port()
    patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    # Otherwise the client asks for the kind of a bucket by gRPC, which the emulator does not know.
    patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    import fsspec
    from gcp_storage_emulator.server import create_server

    patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="market")
    server.start()
    try:
        yield fsspec.filesystem("gs")
    finally:
        server.stop()


@contextmanager
def azure(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Any]:
    needs("fsspec", "adlfs")
    port = free_port()
    command = [
        program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port),
        "--inMemoryPersistence", "--silent", "--skipApiVersionCheck",
    ]  # fmt: skip
    patch.setenv("AZURITE_ACCOUNTS", f"me:{AZURE_KEY}")
    patch.setenv(
        "AZURE_STORAGE_CONNECTION_STRING",
        f"DefaultEndpointsProtocol=http;AccountName=me;AccountKey={AZURE_KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/me;",
    )
    import fsspec

    with started(command, port, folder / "azurite"):
        files = fsspec.filesystem("az")
        files.mkdir("market")
        yield files


@pytest.mark.parametrize(("scheme", "store"), [("gs", google), ("az", azure)])
def test_a_run_reads_from_a_store_and_writes_to_it(
    scheme: str,
    store: Callable[[Path, pytest.MonkeyPatch], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(EACH, "utf-8")
    with store(tmp_path, monkeypatch) as files:

        def opened(name: str, mode: str) -> IO[bytes]:
            return files.open(f"market/{name}", mode)  # type: ignore[no-any-return]

        for name, data in (
            ("readings.nq", TEXT.encode()),
            ("readings.nq.gz", gzip.compress(TEXT.encode())),
        ):
            with opened(name, "wb") as writing:
                writing.write(data)
            command = ["run", "q.rq", "--stream", f"readings={scheme}://market/{name}"]
            assert main([*command, "--output", f"{scheme}://market/found.jsonl"]) == 0
            with opened("found.jsonl", "rb") as reading:
                found = reading.read().decode().splitlines()
            assert values(found) == [str(number) for number in range(1, 201)]
            files.rm("market/found.jsonl")
        absent = f"{scheme}://market/none.nq"
        capsys.readouterr()
        assert main(["run", "q.rq", "--stream", f"readings={absent}"]) == 2
        said = capsys.readouterr().err
        assert f"{absent}: cannot be read: there is no such file" in said
