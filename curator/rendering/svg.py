"""Parts of pictures in SVG. Colours are classes of a page's style, a picture holds no script, and texts are escaped.

It does not know what a picture shows.
"""

from collections.abc import Iterable

from markupsafe import Markup, escape

_LABEL = 18


def picture(width: float, height: float, label: str, parts: Iterable[str]) -> Markup:
    """Return a whole picture. Its parts are SVG, made by functions that escape what they are given."""
    head = f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img"'
    return Markup(f'{head} aria-label="{escape(label)}">{"".join(parts)}</svg>')  # noqa: S704 - parts are escaped


def text(x: float, y: float, words: str, kind: str = "", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{more}>{escape(words)}</text>'


def turned(x: float, y: float, words: str, degrees: float, kind: str = "") -> str:
    """Return a text turned around its own place."""
    return text(x, y, words, kind, f' transform="rotate({degrees:.0f} {x:.1f} {y:.1f})"')


def title(words: str) -> str:
    return f"<title>{escape(words)}</title>"


def shortened(words: str, most: int = _LABEL) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
