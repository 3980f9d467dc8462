"""Advice on a plan before anything is spent: what will not work or not protect, and what would be better.

It does not know rows: everything follows from the plan's public numbers. `prediction.md` holds the assumptions.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from protocol.errors import AdvisedAgainst
from protocol.forecast.coverage import Evidence
from protocol.forecast.error import evidence_of
from protocol.forecast.visibility import ALL_NOISE, error_of_columns, least_count, visible_pairs, visible_partners
from protocol.plan.plan import MOST_SENTENCES, Plan
from protocol.plan.promises import odds_factor
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import spread
from protocol.stages.methods import terms_of
from protocol.tables.attributes import Attribute, Ranged
from protocol.text import printable

Severity = Literal["note", "warning", "stop"]

PROTECTS_NOBODY, PROTECTS_LITTLE = 20, 10  # epsilon
_NOISY = 0.1  # the share of the rows that noise puts into wrong categories
_LARGEST_SENSIBLE = 8  # epsilon that is recommended
_FEW_ROWS = 500
_IDENTIFIES, _FEWEST_IDENTIFIERS = 0.5, 50  # values for each row, and values, of a column that may identify people
_ALMOST_ALL = 0.9  # of the rows
_FEW_PARTIES = 5
_GROUP = 4  # times the smallest visible count: the rows of a group of categories that is recommended
_HARDLY_ANY = 0.1  # relationships of a column that are expected to be counted
_MOST_TOLD = 3  # columns with a piece of advice each
_HALVINGS = 12
SECOND_WORD = "If you mean it, repeat the request with anyway (subn run --anyway); the plan will record this advice."


@dataclass(frozen=True)
class Advice:
    severity: Severity
    text: str  # what was found, and what to do


def advice(terms: Terms) -> tuple[Advice, ...]:
    """Return all advice on a plan, the most severe first."""
    about = (_about_epsilon, _about_parties, _about_people, _about_identifiers, _about_noise)
    found = [one for looked_at in about for one in looked_at(terms)]
    order = ("stop", "warning", "note")
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))


def with_advice(terms: Terms) -> Terms:
    """Return the terms of the same plan with the advice in it that says stop, so that everybody can read it."""
    against = tuple(printable(one.text) for one in advice(terms) if one.severity == "stop")[:MOST_SENTENCES]
    if not against:
        return terms
    return terms_of(terms.plan.model_copy(update={"against": against}), terms.agreed)


def refuse_unless_meant(plan: Plan, anyway: bool) -> None:
    """Raise AdvisedAgainst if advice says stop and the operator has not said the second word."""
    if plan.against and not anyway:
        raise AdvisedAgainst(f"{' '.join(plan.against)} {SECOND_WORD}")


def _about_epsilon(terms: Terms) -> Iterator[Advice]:
    epsilon = terms.plan.epsilon
    if epsilon < PROTECTS_LITTLE:
        return
    odds = (
        f"Epsilon {float(epsilon):g} bounds the odds of a person's row, compared with other values, by a factor of "
        f"{odds_factor(epsilon)}"
    )
    if epsilon >= PROTECTS_NOBODY:
        yield Advice("stop", f"{odds}, which protects nobody: take at most {_LARGEST_SENSIBLE}.")
    else:
        yield Advice("warning", f"{odds}, which protects little: take at most {_LARGEST_SENSIBLE}.")


def _about_parties(terms: Terms) -> Iterator[Advice]:
    plan = terms.plan
    largest = max(plan.members, key=lambda member: member.rows)
    share = largest.rows / plan.total_rows
    if plan.parties > 1 and share >= _ALMOST_ALL:
        yield Advice(
            "note",
            f"{largest.name} holds {share:.0%} of the rows: the table will be much like a table of its rows alone, and "
            "shows little of the other parties.",
        )
    if (
        1 < plan.parties <= _FEW_PARTIES
        and not plan.insiders
        and plan.noise != "local"
        and plan.method != "independent"
    ):
        yield Advice(
            "warning",
            f"Insiders is 0 among {plan.parties} parties: a curious party can take the noise that it added out of the "
            "totals and see the others' rows with less protection than epsilon says. Set insiders to 1, unless every "
            "party trusts all others.",
        )


def _about_people(terms: Terms) -> Iterator[Advice]:
    plan = terms.plan
    rows, parties = plan.rows_per_person, plan.parties_per_person
    if rows > 1:
        yield Advice(
            "note",
            f"A person may have {rows} rows at a party: noise is {rows} times as large as for one row of each person. "
            "If one row, taken at random, answers the question too, set rows per person to 1.",
        )
    if parties > 1:
        yield Advice(
            "note",
            f"A person may have rows at {parties} parties, which a total of all parties pays for with {parties} times "
            "the noise. If no person is at two parties, set parties per person to 1.",
        )


def _about_identifiers(terms: Terms) -> Iterator[Advice]:
    rows = terms.plan.total_rows
    for attribute in terms.schema.attributes:
        if attribute.size >= _identifying(terms):
            instead = "give it fewer bins" if isinstance(attribute, Ranged) else "put its values into groups"
            yield Advice(
                "stop",
                f"{attribute.name} has {attribute.size:,} values for {rows:,} rows, as an identifier has: leave the "
                f"column out of the schema, or {instead}.",
            )


def _about_noise(terms: Terms) -> Iterator[Advice]:
    """Say what noise hides: everything, all relationships, or most values of some columns."""
    evidence, rows = evidence_of(terms), terms.plan.total_rows
    alone = error_of_columns(terms, evidence)
    if rows < _FEW_ROWS:
        yield Advice(
            "warning",
            f"There are only {rows:,} rows: at epsilon {float(terms.plan.epsilon):g} noise puts {alone:.0%} of them "
            "into wrong categories of a typical column. Let more parties or more years take part.",
        )
    if alone >= _NOISY:
        yield _all_noise(terms, evidence, alone)
        return
    if terms.domain.count > 1 and visible_pairs(evidence) < 1:
        yield _only_columns(terms, evidence)
    if terms.plan.encoding == "native":
        yield from _about_categories(terms, evidence)


def _all_noise(terms: Terms, evidence: Sequence[Evidence], alone: float) -> Advice:
    needed = _epsilon(terms, lambda factor: error_of_columns(terms, evidence, factor) < _NOISY)
    return Advice(
        "stop" if alone >= ALL_NOISE else "warning",
        f"Noise puts {alone:.0%} of the rows into wrong categories of a typical column at epsilon "
        f"{float(terms.plan.epsilon):g}, and hides nearly all relationships. {_raise_to(needed)} take fewer columns or "
        "values, or let more rows take part.",
    )


def _only_columns(terms: Terms, evidence: Sequence[Evidence]) -> Advice:
    needed = _epsilon(terms, lambda factor: visible_pairs(evidence, factor) >= 1)
    more = "Raise epsilon," if needed is None else _raise_to(needed)  # no pair may be counted that tells
    return Advice(
        "warning",
        "Nothing but single columns will survive the noise: the table will show hardly any relationship between "
        f"columns. {more} take fewer columns or values, or let more rows take part.",
    )


def _about_categories(terms: Terms, evidence: Sequence[Evidence]) -> Iterator[Advice]:
    """Say which columns have more values than the noise leaves visible, or lose their relationships."""
    found, sizes = evidence[0], terms.schema.sizes
    many, lost = [], []
    for attribute in terms.schema.attributes:
        least = least_count(terms, found, attribute.size)
        if attribute.size >= _identifying(terms):
            continue  # said already
        if least * attribute.size > found.rows and attribute.size > _groups(found.rows, least):
            many.append(attribute)
        elif terms.domain.count > 1 and visible_partners(found, attribute.size, sizes) < _HARDLY_ANY:
            lost.append(attribute)
    many.sort(key=lambda attribute: -attribute.size)
    for attribute in many[:_MOST_TOLD]:
        yield _too_many_values(terms, found, attribute)
    if more := many[_MOST_TOLD:]:
        yield Advice("warning", f"More columns have too many values for this noise: {_names(more)}.")
    if lost:
        yield Advice(
            "warning",
            f"Hardly any relationship of {_names(lost)} with other columns will survive the noise: put the values into "
            "fewer groups, or take fewer columns.",
        )


def _names(attributes: Sequence[Attribute]) -> str:
    told = [f"{one.name} ({one.size:,} values)" for one in attributes[: 2 * _MOST_TOLD]]
    rest = len(attributes) - len(told)
    return ", ".join([*told, *([f"{rest} more"] if rest else [])])


def _groups(rows: int, least: float) -> int:
    """How many groups of categories there may be, so that each has rows enough."""
    return max(2, int(rows / (_GROUP * least)))


def _too_many_values(terms: Terms, found: Evidence, attribute: Attribute) -> Advice:
    size, rows = attribute.size, found.rows
    least = least_count(terms, found, size)
    shares, counts = spread(size)
    visible = int(counts[shares * rows > least].sum())
    needed = float(terms.plan.epsilon) * least * size / rows
    more = f", or raise epsilon to about {_rounded_up(needed)}" if needed <= _LARGEST_SENSIBLE else ""
    return Advice(
        "warning",
        f"{attribute.name} has {size:,} values for {rows:,} rows: about {visible:,} will be visible, because the noise "
        f"hides values with fewer than {math.ceil(least):,} rows. Put them into at most {_groups(rows, least):,} "
        f"groups{more}.",
    )


def _epsilon(terms: Terms, is_enough: Callable[[float], bool]) -> float | None:
    """The smallest sensible epsilon that is enough, if noise falls as epsilon rises and nothing else changes."""
    few, many = 1.0, _LARGEST_SENSIBLE / float(terms.plan.epsilon)
    if many <= few or not is_enough(many):
        return None
    for _ in range(_HALVINGS):
        middle = math.sqrt(few * many)
        few, many = (few, middle) if is_enough(middle) else (middle, many)
    return many * float(terms.plan.epsilon)


def _raise_to(needed: float | None) -> str:
    """Return the beginning of a sentence that goes on with what else would help."""
    if needed is None:
        return f"Epsilon {_LARGEST_SENSIBLE} would not be enough:"
    return f"Raise epsilon to about {_rounded_up(needed)},"


def _rounded_up(epsilon: float) -> str:
    """The epsilon with two digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return f"{math.ceil(epsilon / unit - 1e-9) * unit:g}"


def _identifying(terms: Terms) -> float:
    """How many values a column has at least that may identify people."""
    return max(_IDENTIFIES * terms.plan.total_rows, _FEWEST_IDENTIFIERS)
