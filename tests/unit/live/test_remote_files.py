"""Finished files by URL: from and to an S3 server, and from an HTTP server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from servers import free_port, needs
from session_runs import EACH, Running, values
from test_following import event
from web_servers import answer, http_server

import spaseq
from spaseq.cli import main
from spaseq.errors import InputError, SpaseqError
from spaseq.io.remote_files import is_remote_file, open_remote
from spaseq.live.session import LiveOptions

TEXT = "".join(map(event, range(1, 2001)))


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """An S3 server with the bucket `market`; its client."""
    needs("s3fs", "moto", "boto3")
    import boto3
    from moto.server import ThreadedMotoServer

    port = free_port()
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    patch = pytest.MonkeyPatch()
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "me"), ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"), ("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}"),
    ):  # fmt: skip
        patch.setenv(name, value)
    server.start()
    client = boto3.client("s3")
    client.create_bucket(Bucket="market")
    yield client
    server.stop()
    patch.undo()


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(EACH, "utf-8")
    return "q.rq"


def test_a_run_reads_from_s3_and_writes_to_s3(s3: Any, query: str) -> None:
    s3.put_object(Bucket="market", Key="readings.nq", Body=TEXT.encode())
    s3.put_object(Bucket="market", Key="readings.nq.gz", Body=gzip.compress(TEXT.encode()))
    for name in ("readings.nq", "readings.nq.gz"):
        status = main(
            ["run", query, "--stream", f"readings=s3://market/{name}",
             "--output", "s3://market/found.jsonl"]
        )  # fmt: skip
        assert status == 0
        found = s3.get_object(Bucket="market", Key="found.jsonl")["Body"].read().decode()
        assert values(found.splitlines()) == [str(number) for number in range(1, 2001)]
        s3.delete_object(Bucket="market", Key="found.jsonl")


def test_what_is_not_there_is_an_error(
    s3: Any, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", query, "--stream", "readings=s3://market/none.nq"]
    assert main(command) == 2
    assert "s3://market/none.nq: cannot be read: there is no such file" in capsys.readouterr().err
    assert main([*command, "--check-config"]) == 2
    assert "there is no such file" in capsys.readouterr().out


def test_a_live_run_continues_in_the_middle_of_a_file(s3: Any, tmp_path: Path, query: str) -> None:
    s3.put_object(Bucket="market", Key="live.nq", Body=TEXT.encode())
    url = "s3://market/live.nq"
    options = LiveOptions(state=str(tmp_path / "state"), close=False)
    with Running(tmp_path, url, options=options) as run:
        run.wait_for(lambda: run.session.run.clock.events > 0)
        run.session.stop()
        run.join()
    with Running(tmp_path, url, options=options) as run:
        run.join()
    assert values(run.found) == [str(number) for number in range(1, 2001)]
    with pytest.raises(SpaseqError, match="cannot be cut back and continued"):
        Running(
            tmp_path,
            url,
            options=LiveOptions(state=str(tmp_path / "other")),
            output="s3://market/out.jsonl",
        )


def test_a_run_reads_finished_files_of_a_web_server(tmp_path: Path, query: str) -> None:
    needs("fsspec", "aiohttp")

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.path.startswith("/moved"):
            answer(request, 302, location="/readings.nq?version=2")
        elif request.path.startswith("/readings.nq.gz"):
            answer(request, 200, gzip.compress(TEXT.encode()), content_type="application/gzip")
        elif request.path.startswith("/readings.nq"):
            answer(request, 200, TEXT.encode(), content_type="application/n-quads")
        else:
            answer(request, 404)

    with http_server(handle) as address:
        for name in ("readings.nq?version=1", "moved.nq", "readings.nq.gz"):
            command = ["run", query, "--stream", f"readings={address}/{name}", "-o", "out.jsonl"]
            assert main(command) == 0
            found = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
            assert len(found) == 2000
            assert json.loads(found[0])["bindings"]["value"]["value"] == "1"


def test_a_redirection_of_a_file_is_checked() -> None:
    needs("fsspec", "aiohttp")

    def handle(request: BaseHTTPRequestHandler) -> None:
        answer(request, 302, location="http://169.254.169.254/secrets.nq")

    with (
        http_server(handle) as address,
        pytest.raises(InputError, match="a private address, which is not followed"),
    ):
        open_remote(f"{address}/x.nq").read()


def test_the_name_in_a_redirection_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that was public when it was checked is private when the connection is made."""
    needs("fsspec", "aiohttp")
    asked: list[str] = []

    def handle(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)
        port = request.server.server_address[1]  # type: ignore[index]
        answer(request, 302, location=f"http://localhost:{port}/secrets.nq")

    monkeypatch.setattr("spaseq.io.redirections.check_redirection", lambda url, there: None)
    with http_server(handle) as address, pytest.raises(InputError, match="private address"):
        open_remote(f"{address}/x.nq").read()
    assert set(asked) == {"/x.nq"}


def test_errors_of_a_web_server_say_why_and_show_no_secret() -> None:
    needs("fsspec", "aiohttp")

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.path.startswith("/wrong.nq"):
            answer(request, 200, b"<s> <p>\n", content_type="application/n-quads")
        else:
            answer(request, 403)

    with http_server(handle) as address:
        server = address.removeprefix("http://")
        for place, name, said in (
            (server, "wrong.nq", "wrong.nq:1: "),
            (
                server,
                "private.nq",
                "private.nq: cannot be read: the server answers with status 403",
            ),
            ("127.0.0.1:1", "none.nq", "none.nq: cannot be read: Cannot connect to host"),
        ):
            url = f"http://me:hidden@{place}/{name}?signature=hidden"
            with pytest.raises(InputError) as caught, spaseq.run(EACH, {"readings": url}) as found:
                list(found)
            assert f"http://{place}/{said}" in str(caught.value)
            assert "hidden" not in str(caught.value)
    with pytest.raises(SpaseqError, match=r"streams: ftp://h/x\.nq is not the URL"):
        spaseq.run(EACH, {"readings": "ftp://me:hidden@h/x.nq"})


@pytest.mark.parametrize(
    ("url", "is_file"),
    [
        ("s3://bucket/key", True), ("gs://bucket/key.nq", True), ("hdfs://host/key.nq", True),
        ("https://h/a.nq", True), ("https://h/a.ttl.gz?x=1", True), ("https://h/events", False),
        ("kafka://h/t.nq", False), ("a.nq", False), ("C:/x.nq", False),
    ],
)  # fmt: skip
def test_urls_of_files_are_known(url: str, is_file: bool) -> None:
    assert is_remote_file(url) is is_file


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with pytest.raises(SpaseqError, match=r"pip install 'spaseq\[gs\]'"):
        open_remote("gs://bucket/key.nq")


def test_python_reads_a_finished_file_by_url(s3: Any) -> None:
    s3.put_object(Bucket="market", Key="python.nq", Body=TEXT.encode())
    with spaseq.run(EACH, {"readings": "s3://market/python.nq"}) as result:
        assert sum(1 for _ in result) == 2000


# ------------------------------------------------------------------ the data sources of Spark


def test_spark_reads_and_writes_on_s3(s3: Any) -> None:
    """The readers and writers alone, as Spark's workers call them."""
    pytest.importorskip("pyspark", reason="the data sources of Spark need pyspark")
    from pyspark.sql import Row, types

    from spaseq.spark.sink import RdfFiles
    from spaseq.spark.source import EventOptions, EventsReader

    def names(path: str, **more: str) -> list[str]:
        given = EventOptions.parse({"path": path, "stream": "urn:s", "times": "string", **more})
        reader = EventsReader(given)
        made = (batch for part in reader.partitions() for batch in reader.read(part))
        return [name for batch in made for name in batch.column("name").to_pylist()]

    for key, first in (("in/a.nq", 1), ("in/b.nq.gz", 3), ("in/more/c.nq", 5), ("in/_d.nq", 7)):
        text = "".join(map(event, range(first, first + 2))).encode()
        body = gzip.compress(text) if key.endswith("gz") else text
        s3.put_object(Bucket="market", Key=key, Body=body)
    s3.put_object(Bucket="market", Key="in/readme.md", Body=b"none")
    one, *_ = whole = names("s3a://market/in", recursiveFileLookup="true")
    assert len(whole) == 6
    assert sorted(names("s3://market/in")) == sorted(whole[:4])
    assert names("s3://market/in/*.gz") == names("s3://market/in/b.nq.gz") == whole[2:4]
    with pytest.raises(SpaseqError, match="no RDF file at s3://market/none"):
        names("s3://market/none")
    with pytest.raises(SpaseqError, match="ftp://x is neither a path nor a URL of a known"):
        names("ftp://x")

    quad = {"s": "<urn:a>", "p": "<urn:p>", "o": "<urn:o>", "g": f"<{one}>"}
    schema = types.StructType([types.StructField(name, types.StringType()) for name in quad])
    options = {"path": "s3://market/out", "compression": "gzip"}
    for overwrite in (False, True):
        writer = RdfFiles(options).writer(schema, overwrite)
        messages = [writer.write(iter([Row(**quad)] * count)) for count in (2, 0)]
        writer.commit(messages)
    (found,) = s3.list_objects_v2(Bucket="market", Prefix="out/")["Contents"]
    body = s3.get_object(Bucket="market", Key=found["Key"])["Body"].read()
    assert gzip.decompress(body).decode() == f"<urn:a> <urn:p> <urn:o> <{one}> .\n" * 2
    writer.abort([writer.write(iter([Row(**quad)]))])
    assert s3.list_objects_v2(Bucket="market", Prefix="out/")["KeyCount"] == 1
