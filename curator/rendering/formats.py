"""Formats for numbers, times and states on pages: a short value, with the exact value beside it.

It does not know pages. Every function returns text or safe HTML for a template.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from markupsafe import Markup, escape

from protocol.stages.registry import labels

_DECIMALS = 6
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STATES = {
    "joining": ("wait", "joining"),
    "running": ("wait", "running"),
    "finished": ("good", "finished"),
    "failed": ("bad", "failed"),
    "refused": ("bad", "refused"),
    "cancelled": ("", "cancelled"),
    "timed_out": ("bad", "timed out"),
}


def exact_number(value: str | Fraction) -> Markup:
    """Write an exact number as a decimal, marked ≈ if rounded; the exact value is in the element's `value`."""
    number = Fraction(value)
    shown = decimal(number)
    about = "" if Fraction(shown) == number else "≈ "
    return Markup('<data value="{}" title="exactly {}">{}{}</data>').format(str(value), str(value), about, shown)


def decimal(number: Fraction) -> str:
    shown = f"{float(number):.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return shown if Fraction(shown) or not number else f"{float(number):.3g}"


def count(value: int) -> str:
    return f"{value:,}"


def size(value: int) -> Markup:
    """Write a number of bytes in a suitable unit."""
    amount, unit = float(value), 0
    while amount >= 1000 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1000, unit + 1
    shown = f"{amount:.0f}" if unit == 0 or amount >= 100 else f"{amount:.1f}"
    return Markup('<data value="{}" title="{:,} bytes">{} {}</data>').format(value, value, shown, _UNITS[unit])


def error_share(value: float | None) -> Markup:
    """Write an expected error as a percentage of a table's rows."""
    if value is None:
        return Markup('<span class="quiet">–</span>')
    digits = 0 if value >= 0.9995 else 1 if value >= 0.0995 else 2
    shown = f"{value:.{digits}%}" if value >= 0.001 else "< 0.1%"
    return Markup('<data value="{}">{}</data>').format(repr(value), shown)


def bound(value: float | None) -> Markup:
    """Write an upper bound on an error, or a dash for a bound of 100 %, which says nothing."""
    return error_share(None if value is not None and value >= 1 else value)


def duration(seconds: float) -> str:
    """Write a duration in the two largest units that fit, exactly as `pages.js` does."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole // 60 % 60:02} min"
    return f"{whole // 86400} d {whole // 3600 % 24:02} h"


def about(seconds: float) -> str:
    """Write a forecast of a duration."""
    return "none" if not seconds else "< 1 s" if seconds < 1 else f"≈ {duration(seconds)}"


def moment(at: datetime | None) -> Markup:
    if at is None:
        return Markup('<span class="quiet">never</span>')
    written = f"{at.day} {at:%b %Y, %H:%M} UTC"
    return Markup('<time class="tight" datetime="{}">{}</time>').format(at.isoformat(), written)


def since(at: datetime | None, now: datetime) -> Markup:
    """Write how long ago a moment was; the page keeps it up to date."""
    if at is None:
        return Markup('<span class="quiet">never</span>')
    ago = duration((now - at).total_seconds())
    return Markup('<time class="tight" datetime="{0}" data-since="{0}">{1}</time>').format(at.isoformat(), ago)


def until(at: datetime, now: datetime) -> Markup:
    left = duration((at - now).total_seconds())
    return Markup('<time class="tight" datetime="{0}" data-until="{0}">{1}</time>').format(at.isoformat(), left)


def state(name: str) -> Markup:
    kind, words = _STATES[name]
    return Markup('<span class="mark {}">{}</span>').format(kind, words)


def stage(name: str) -> str:
    return labels().get(name, name)


def step(name: str | None) -> str:
    """ "update/2" -> "Updates 2"."""
    if not name:
        return ""
    of_stage, _, number = name.partition("/")
    return f"{stage(of_stage)} {number}".strip()


def human(text: str) -> Markup:
    """Mark up a name given by people, in any script, so that it keeps its own writing direction."""
    return Markup('<bdi dir="auto">{}</bdi>').format(escape(text))


def marked(text: str) -> Markup:
    """Mark up text between back quotes as code."""
    parts = [escape(part) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in
                           enumerate(parts))  # fmt: skip


def factor(text: str) -> str:
    """Write a factor from `protocol.plan.promises.odds_factor`, which is a number or words for a very large one."""
    return f"× {text}" if text[0].isdigit() else text


FILTERS: Mapping[str, Callable[..., Any]] = {
    "exact_number": exact_number,
    "count": count,
    "size": size,
    "error_share": error_share,
    "bound": bound,
    "duration": duration,
    "about": about,
    "moment": moment,
    "since": since,
    "until": until,
    "state": state,
    "stage": stage,
    "step": step,
    "human": human,
    "marked": marked,
    "factor": factor,
}
