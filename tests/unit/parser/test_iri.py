"""Relative references: the examples of RFC 3986 section 5.4, and what urljoin gets wrong."""

from __future__ import annotations

import pytest

from spaseq.parser.iri import is_absolute, resolve

_BASE = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"),
        ("//g/a/../b/.", "http://g/b/"),
    ],
)
def test_rfc_3986(reference: str, expected: str) -> None:
    assert resolve(reference, _BASE) == expected


@pytest.mark.parametrize(
    ("base", "reference", "expected"),
    [
        ("http://a/b#c", "", "http://a/b"),
        ("http://a/b#c", "#d", "http://a/b#d"),
        ("http://a", "g", "http://a/g"),
        ("http://a?q", "", "http://a?q"),
        ("urn:a:b", "#c", "urn:a:b#c"),
        ("urn:a:b", "c", "urn:c"),
        ("tag:e,2026:x/y", "z", "tag:e,2026:x/z"),
        ("app://h/a/b", "../c", "app://h/c"),
        ("http://a/b", "HTTP://x/../y", "HTTP://x/../y"),
        ("http://é/ü", "ö", "http://é/ö"),
    ],
)
def test_other_bases(base: str, reference: str, expected: str) -> None:
    assert resolve(reference, base) == expected


def test_what_is_absolute() -> None:
    assert is_absolute("a+b-1.c:x")
    assert not is_absolute("1a:x")
    assert not is_absolute("//host/x")
