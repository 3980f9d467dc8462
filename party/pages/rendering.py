"""Rendering of facts as pages: the templates, and how they write numbers, times and hashes.

It does not know which page shows what (`party.pages.routes`).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from party.home.home import OpenHome
from party.home.settings import load
from party.pages import sentences
from party.pages.sessions import Session
from party.views import STATES, amount, notes, people, promise
from protocol.errors import SubnError
from protocol.plan.promises import owners_conditions
from protocol.services.glossary import Term, terms_in

_KILO = 1000
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_MARKS = {"asked": "wait", "accepted": "accent", "active": "accent", "refused": "bad"}
_OUTCOMES = {"finished": "good", "failed": "bad", "timed_out": "bad", "refused": "bad"}


class Renderer:
    def __init__(self, opened: OpenHome, trouble: Callable[[], str | None]) -> None:
        self._opened, self._trouble = opened, trouble
        self._settings_text = opened.home.settings.read_bytes() if opened.home.settings.exists() else b""

    def page(self, template: str, session: Session | None, status: int = 200, **facts: Any) -> HTMLResponse:
        """Render a page. Without a session it shows nothing of the party."""
        own = self._own() if session is not None else {"party": "", "waiting": 0, "trouble": None, "is_stale": False}
        token = session.form_token if session is not None else ""
        text = _environment().get_template(template).render(facts | own, form_token=token)
        return HTMLResponse(text, status)

    def _own(self) -> dict[str, Any]:
        """Facts for the head of every page."""
        return {
            "party": self._opened.curator.name,
            "waiting": len(self._opened.ledger.requests("asked")),
            "trouble": self._trouble(),
            "is_stale": self._is_stale(),
        }

    def _is_stale(self) -> bool:
        """Whether party.toml has changed since the service started, except for fingerprints, which are read anew."""
        path = self._opened.home.settings
        try:
            if path.read_bytes() == self._settings_text:
                return False
            now = load(self._opened.home)
            return now.model_copy(update={"peers": self._opened.settings.peers}) != self._opened.settings
        except (SubnError, OSError):
            return True


@cache
def glossary() -> tuple[Term, ...]:
    return terms_in((files("protocol") / "glossary.md").read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("party.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "amount": amount,
        "epsilon": sentences.epsilon,
        "exact": exact,
        "event_words": sentences.event,
        "conditions": lambda facts: owners_conditions(facts["insiders"], people(facts)),
        "headline": sentences.headline,
        "notes": notes,
        "number": lambda value: f"{value:,}",
        "percent": lambda value: f"{100 * value:.1f} %",
        "promise": promise,
        "sentence": lambda text: f"{text[:1].upper()}{text[1:]}.",
        "size": size,
        "state": state,
        "quoted": lambda text: quote(str(text), safe=""),
        "when": when,
    }
    found.globals |= {"version": version("dp-subn"), "bar": bar}
    return found


def exact(text: str, sign: str = "") -> Markup:
    """A budget as a decimal after `sign`, followed by its exact fraction unless it is a whole number."""
    fraction, shown = Fraction(text), amount(text).partition(" (")[0]
    about = "about " if shown.startswith("about ") else ""
    shown = about + sign + shown.removeprefix("about ")
    if fraction.denominator == 1:
        return escape(shown)
    return Markup('<span class="tight">{} <small>({})</small></span>').format(shown, fraction)


def when(at: str) -> Markup:
    """A moment in UTC, for people and, as an attribute, for machines."""
    moment = datetime.fromisoformat(at).astimezone(UTC)
    return Markup('<time class="tight" datetime="{}">{}</time>').format(at, f"{moment:%d %b %Y, %H:%M:%S}")


def size(count: int) -> str:
    value, unit = float(count), 0
    while value >= _KILO and unit < len(_UNITS) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{count:,} bytes" if unit == 0 else f"{value:.3g} {_UNITS[unit]}"


def state(facts: dict[str, Any]) -> Markup:
    kind = _OUTCOMES.get(facts["outcome"], "") if facts["state"] == "ended" else _MARKS[facts["state"]]
    text = (facts["outcome"] or "over").replace("_", " ") if facts["state"] == "ended" else STATES[facts["state"]]
    return Markup('<span class="mark {}">{}</span>').format(kind, text)


def bar(budget: dict[str, Any], asked: str = "0") -> dict[str, float]:
    """The parts of a budget as lengths on a line from 0 to 100."""
    spent, reserved = Fraction(budget["spent"]), Fraction(budget["reserved"])
    whole = max(Fraction(budget["total"]), spent + reserved + Fraction(asked)) or Fraction(1)

    def place(value: Fraction) -> float:
        return round(float(100 * value / whole), 2)

    return {"spent": place(spent), "reserved": place(reserved), "asked": place(Fraction(asked))}
