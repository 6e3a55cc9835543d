"""MQTT 5: code that the source and the sink share.

`mqtt://[user:password@]host[:port]/topic`; a topic may have the wildcards `+` and `#`. The client
is paho-mqtt, which reconnects automatically and keeps the session. It can be made to wait while the
queries are slow, when clients with their own queues drop messages.
"""

from __future__ import annotations

from typing import Any

from spaseq.errors import SpaseqError
from spaseq.live.addresses import Address, address, client
from spaseq.live.mqtt_connection import buffered_client
from spaseq.live.tls import trusted

KEEPALIVE_SECONDS = 30
REFUSED = ("Bad user name or password", "Not authorized", "Banned", "Client identifier not valid",
           "Unsupported protocol version", "Bad authentication method")  # fmt: skip
"""Answers of a broker after which reconnecting is useless."""


def mqtt_address(url: str, options: tuple[str, ...]) -> Address:
    """The parts of a URL of a topic.

    Raises:
        SpaseqError: if it names no topic, or has an unknown option.
    """
    found = address(url.replace("#", "%23"), (*options, "ca"))
    if not found.path:
        raise SpaseqError(f"{found.shown}: write {found.scheme}://HOST:PORT/TOPIC")
    return found


def mqtt_client(found: Address, name: str | None) -> Any:
    """A client that is not connected; `name`: the identifier of its session."""
    mqtt = client("paho.mqtt.client", "paho-mqtt", "mqtt", "mqtt")
    made = buffered_client(mqtt)(
        mqtt.CallbackAPIVersion.VERSION2, client_id=name or "", protocol=mqtt.MQTTv5
    )
    if found.user is not None:
        made.username_pw_set(found.user, found.password)
    context = trusted(found)
    if found.scheme == "mqtts":
        made.tls_set_context(context)
    made.reconnect_delay_set(1, 30)
    return made


def begin(made: Any, found: Address, session: float, clean_start: Any) -> None:
    """Prepare to connect; the connection is made by the loop of the client."""
    properties = client("paho.mqtt.properties", "paho-mqtt", "mqtt", "mqtt")
    types = client("paho.mqtt.packettypes", "paho-mqtt", "mqtt", "mqtt")
    wanted = properties.Properties(types.PacketTypes.CONNECT)
    wanted.SessionExpiryInterval = int(session)
    host, port = host_and_port(found)
    made.connect_async(host, port, KEEPALIVE_SECONDS, clean_start=clean_start, properties=wanted)


def host_and_port(found: Address) -> tuple[str, int]:
    """Where to connect to.

    Raises:
        SpaseqError: for a port that is not a number.
    """
    host, colon, port = found.hosts.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = found.hosts, "8883" if found.scheme == "mqtts" else "1883"
    if not port.isdigit():
        raise SpaseqError(f"{found.shown}: the port is not a number")
    return host.strip("[]"), int(port)
