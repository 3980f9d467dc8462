"""The terms of a request; with method `recommended`, those of the method that is predicted to make the better table.

It does not know rows: everything follows from public numbers. What was weighed is written into the plan, so that
everybody who reads the plan sees which method it is and why.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from crypto.paillier.public import SMALLEST_BITS
from protocol.errors import PlanError
from protocol.forecast.error import predicted
from protocol.options import Method, Preset, Wanted
from protocol.plan.plan import Member, Weighed
from protocol.plan.presets import make_plan, wishes_families
from protocol.plan.terms import Terms
from protocol.run.agreement import FEWEST_MEMBERS, agree
from protocol.tables.schema import Schema

_DIGITS = 4  # of a predicted error, after the point


def planned(
    run: str,
    schema: Schema,
    members: Sequence[Member],
    epsilon: Fraction,
    method: Wanted = "recommended",
    preset: Preset = "sound",
    smallest_key: int = SMALLEST_BITS,
    fewest: int = FEWEST_MEMBERS,
    **wishes: Any,
) -> Terms:
    """The agreed terms of a plan for these members. Raise PlanError if there can be none."""

    def terms(of: Method, weighed: tuple[Weighed, ...] = ()) -> Terms:
        plan = make_plan(run, schema, members, epsilon, of, preset, weighed=weighed, **wishes)
        return agree(plan, schema, smallest_key, fewest)

    if method != "recommended":
        return terms(method)
    candidates = _candidates(preset, {name: wish for name, wish in wishes.items() if wish is not None})
    weighed, first = [], None
    for candidate in candidates:
        try:
            found = predicted(terms(candidate))
            weighed.append(Weighed(method=candidate, error=_rounded(found.usual), why=found.why))
        except PlanError as error:
            first = first or error
            weighed.append(Weighed(method=candidate, error=None, why=str(error)))
    best = min(weighed, key=lambda one: (one.error is None, one.error or 0))
    if first is not None and all(one.error is None for one in weighed):
        return _first_possible(candidates, terms, tuple(weighed), first)
    return terms(best.method, tuple(weighed))


def _first_possible(candidates: Sequence[Method], terms: Any, weighed: tuple[Weighed, ...], error: PlanError) -> Terms:
    """The terms of the first candidate that can be run, where no error is predicted for any."""
    for candidate in candidates:
        try:
            found: Terms = terms(candidate, weighed)
            return found
        except PlanError:
            continue
    raise error


def _candidates(preset: Preset, asked: dict[str, Any]) -> tuple[Method, ...]:
    """The methods that can grant the wishes; the first is taken where nothing can be predicted."""
    if preset == "paper" or wishes_families(asked):
        return ("dp-subn",)
    return ("guided",) if "rounds" in asked else ("guided", "dp-subn")


def _rounded(error: float | None) -> Fraction | None:
    return None if error is None else Fraction(round(error * 10**_DIGITS), 10**_DIGITS)
