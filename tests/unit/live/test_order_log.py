"""The order of the messages that a source has passed on."""

from __future__ import annotations

from spaseq.live.order_log import OrderLog


def test_the_items_after_a_checkpoint() -> None:
    log: OrderLog[str] = OrderLog()
    log.count = 5  # from an earlier run
    for item in "abc":
        log.append(item)
    assert log.count == 8
    assert log.after(5) == (0, ["a", "b", "c"])
    assert log.after(7) == (0, ["c"])
    assert log.after(8) == (0, [])
    log.forget(6)
    assert log.after(6) == (0, ["b", "c"])
    log.forget(8)
    assert log.after(8) == (0, [])


def test_messages_without_an_item_come_first() -> None:
    log: OrderLog[int] = OrderLog()
    log.append(None)
    log.append(None)
    assert log.after(0) == (2, [])
    log.append(1)
    log.append(0)
    assert log.after(0) == (2, [1, 0])
    assert log.after(1) == (1, [1, 0])
    assert log.after(3) == (0, [0])
    log.forget(1)
    assert log.after(1) == (1, [1, 0])
