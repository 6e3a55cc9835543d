"""What the SVG images share: the frame, the style, and texts.

An image refers to no external fonts, scripts or styles. Its colours follow `currentColor`: inside a
page they are the colours of the page's text, and an image on its own follows the light or dark mode
of the viewer. Every selector begins with the class `spaseq`, because the style of an inline SVG
image applies to the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

LINE = 17.0
"""The distance between lines of text, in pixels."""
FONT_PIXELS = {"name": 14.0, "note": 11.5, "red": 11.5, "live": 11.5}
_LETTER_WIDTH = {"name": 0.72, "note": 0.62, "red": 0.68, "live": 0.68}
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = """\
svg.spaseq:root{background:#ffffff;color:#1f2937}
@media (prefers-color-scheme:dark){svg.spaseq:root{background:#111827;color:#e5e7eb}}
.spaseq text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;text-anchor:middle;\
fill:currentColor}
.spaseq .name{font-size:14px;font-weight:bold}
.spaseq .note{font-size:11.5px;opacity:.8}
.spaseq .red{font-size:11.5px;font-weight:bold;fill:#d9434b}
.spaseq .live{font-size:11.5px;font-weight:bold;fill:#3b82c4}
.spaseq .left{text-anchor:start}
.spaseq .way{fill:none;stroke:currentColor;stroke-opacity:.6;stroke-width:1.5;\
stroke-linejoin:round}
.spaseq .tip{fill:currentColor;fill-opacity:.75}
.spaseq .box{fill:currentColor;fill-opacity:.05;stroke:currentColor;stroke-opacity:.6;\
stroke-width:1.3}
.spaseq .start{fill:#2f9e44;fill-opacity:.18}
"""


def image(title: str, parts: Iterable[str], width: float, height: float) -> str:
    """A whole image; `title` is what screen readers and tooltips say."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="spaseq" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escaped(title)}">\n<title>{escaped(title)}</title>\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def printable(text: str) -> str:
    """The text with a replacement for each character that XML cannot hold."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def escaped(text: str) -> str:
    """The text for the content or an attribute of an XML element."""
    return escape(printable(text))


def text_width(text: str, style: str) -> float:
    """An upper estimate of the width of a text in any sans-serif font, in pixels."""
    return len(text) * FONT_PIXELS[style] * _LETTER_WIDTH[style]


def text_at(text: str, x: float, y: float, style: str) -> str:
    """A text element; `style` is the names of its classes."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escaped(text)}</text>'
