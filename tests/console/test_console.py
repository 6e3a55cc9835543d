"""The console in a real browser: from a query with a mistake to a match."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

QUERY = """\
PREFIX : <http://example.org/>
SELECT ?sensor ?before ?after
FROM STREAM readings <http://example.org/readings>
WITHIN 10 MINUTES
PARTITION BY ?sensor
WHERE {
  SEQ(Cold ; Hot)
  DEFINE GPM Cold ON readings { ?sensor :celsius ?before FILTER(?before < 30) }
  DEFINE GPM Hot ON readings { ?sensor :celsius ?after FILTER(?after > LIMIT_HERE) }
}
"""
EVENT = """\
PREFIX : <http://example.org/>
:e{n} <http://www.w3.org/ns/prov#generatedAtTime>
  "2026-01-01T00:0{n}:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
:e{n} {{ :s1 :celsius {celsius} }}
"""
PATIENCE = 20_000
"""Milliseconds that a busy machine may take."""


def is_fault(message: ConsoleMessage) -> bool:
    """Whether the console of the browser complains of something unexpected.

    Requests may be refused. Text that is inserted over a selection gets an inline style from the
    browser itself, which the policy of the page refuses.
    """
    expected = ("Failed to load resource", "Applying inline style")
    return message.type == "error" and not message.text.startswith(expected)


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(PATIENCE)
    made = context.new_page()
    complaints: list[str] = []
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "console", lambda message: complaints.append(message.text) if is_fault(message) else None
    )
    made.goto(server)
    yield made
    context.close()
    assert not complaints


def write(page: Page, text: str) -> None:
    """Replace the text of the editor."""
    page.locator(".cm-content:visible").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def register(page: Page, name: str, limit: str) -> None:
    page.get_by_role("link", name="+ new").click()
    page.get_by_label("Name of the query").fill(name)
    write(page, QUERY.replace("LIMIT_HERE", limit))
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible(timeout=PATIENCE)


def push(page: Page, celsius: int, n: int) -> None:
    """Push an event of the stream by the form of its page."""
    page.locator("#side").get_by_role("link", name="readings").click()
    page.get_by_label("Events", exact=True).fill(EVENT.format(n=n, celsius=celsius))
    page.get_by_role("button", name="Push", exact=True).click()
    expect(page.get_by_text("1 accepted, 0 late, 0 rejected")).to_be_visible(timeout=PATIENCE)


def test_a_mistake_is_shown_mended_and_matched(page: Page) -> None:
    page.get_by_role("link", name="+ new").click()
    page.get_by_label("Name of the query").fill("hot")
    write(page, QUERY.replace("LIMIT_HERE", "?missing"))
    expect(page.locator(".problems li").first).to_contain_text("missing", timeout=PATIENCE)
    expect(page.locator(".cm-lintRange-error, .cm-lintRange-warning").first).to_be_visible()
    write(page, QUERY.replace("LIMIT_HERE", "60"))
    expect(page.locator(".problems li")).to_have_count(0, timeout=PATIENCE)
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="hot")).to_be_visible(timeout=PATIENCE)

    push(page, 20, 1)
    page.locator("#side").get_by_role("link", name="hot").click()
    place = page.locator("[data-place='2']")
    expect(place.locator(".tokens circle")).to_have_count(1, timeout=PATIENCE)
    place.click()
    panel = page.get_by_label("Details")
    expect(panel).to_contain_text("s1", timeout=PATIENCE)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()

    # A second page pushes, so that this one sees the match come.
    request = urllib.request.Request(
        page.url.split("#")[0] + "v1/streams/readings/events",
        EVENT.format(n=2, celsius=70).encode(),
        {"Content-Type": "application/trig"},
        method="POST",
    )
    urllib.request.urlopen(request).close()
    row = page.locator(".matches tbody tr").first
    expect(row).to_contain_text("70", timeout=PATIENCE)
    row.get_by_role("button", name="Hot").click()
    expect(panel).to_contain_text("celsius", timeout=PATIENCE)


def test_a_query_is_replaced_and_explained(page: Page) -> None:
    register(page, "hot", "60")
    page.get_by_role("tab", name="Text").click()
    expect(page.locator(".cm-content:visible")).to_contain_text("60")
    write(page, QUERY.replace("LIMIT_HERE", "90"))
    page.get_by_role("button", name="Replace").click()
    expect(page.get_by_text("hot was replaced.")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("tab", name="Why").click()
    expect(page.locator("#tab-why")).to_contain_text("0 matches", timeout=PATIENCE)
    page.get_by_label("The triples of an event").fill(
        "<http://example.org/s1> <http://example.org/celsius> 71 ."
    )
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".verdict")).to_contain_text("Hot", timeout=PATIENCE)
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator("#tab-plan")).to_contain_text("SEQ(Cold ; Hot)", timeout=PATIENCE)


def test_keys_theme_and_removal(page: Page) -> None:
    register(page, "hot", "60")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("new query")
    page.keyboard.press("Escape")
    root = page.locator("html")
    for theme in ("light", "dark", "auto"):
        page.keyboard.press("t")
        expect(root).to_have_attribute("data-theme", theme)
    page.keyboard.press("2")
    expect(page.get_by_role("tab", name="Text")).to_have_attribute("aria-selected", "true")
    page.get_by_role("heading", name="hot").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No query yet")).to_be_visible(timeout=PATIENCE)


def test_the_keyboard_alone(page: Page) -> None:
    register(page, "hot", "60")
    push(page, 20, 1)
    link = page.locator("#side").get_by_role("link", name="hot")
    link.focus()
    page.wait_for_timeout(1500)  # the list is drawn every second
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="Live").press("ArrowRight")
    text = page.get_by_role("tab", name="Text")
    expect(text).to_be_focused()
    expect(text).to_have_attribute("aria-selected", "true")
    text.press("End")
    expect(page.get_by_role("tabpanel", name="Plan")).to_be_visible()
    page.keyboard.press("Home")

    place = page.get_by_role("button", name="Place 2")
    place.press("Enter")
    panel = page.get_by_label("Details")
    expect(panel.get_by_role("button", name="Close")).to_be_focused()
    expect(panel).to_contain_text("s1", timeout=PATIENCE)
    page.keyboard.press("Escape")
    expect(place).to_be_focused()


def test_a_query_that_does_not_exist(page: Page) -> None:
    page.goto(f"{page.url}#/q/none")
    expect(page.locator(".heading")).to_contain_text("there is no such query")
    expect(page.get_by_role("button", name="Remove")).to_be_disabled()
    expect(page.get_by_text("there is no query none")).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize(
    "server", ["looks read 0123456789abcdef; feeds ingest fedcba9876543210"], indirect=True
)
def test_signing_in(page: Page) -> None:
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("a bearer token is needed")
    page.keyboard.press("Escape")
    expect(page.locator("#vitals")).to_have_text("not signed in")
    page.get_by_role("button", name="Sign in").click()
    for token, answer in (("fedcba9876543210", "no role read"), ("0123456789abcdef", None)):
        dialog.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        if answer is not None:
            expect(dialog).to_contain_text(answer)
    expect(page.locator("#vitals")).to_contain_text("ready", timeout=PATIENCE)
    expect(dialog).to_have_count(0)
