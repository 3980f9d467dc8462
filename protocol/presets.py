"""Plans from few words: the two presets, and what each method takes from them.

It does not know rows; `agreement` checks what comes out.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from protocol.encoding import Encoding
from protocol.errors import PlanError
from protocol.exact import allocate, proportional_counts
from protocol.plan import Member, Method, Plan, Preset
from protocol.schema import Schema

# PAPER: what the papers say, where it can be said honestly. RECOMMENDED: what has measured better.
PAPER: dict[str, Any] = {
    "insiders": 0,
    "noise": "selected",
    "update": "replace",
    "rounds": 1,
    "encoding": "binary",
    "choice": "exponential",
    "theta": Fraction(6),
    "frontier_theta": Fraction(2),
    "cover_objective": "paper",
    "cover_budgets": "equal",
}
RECOMMENDED: dict[str, Any] = {
    "insiders": 1,
    "noise": "selected",
    "update": "accumulate",
    "rounds": 2,
    "encoding": "native",
    "choice": "permute-and-flip",
    "theta": Fraction(6),
    "frontier_theta": Fraction(2),
    "cover_objective": "expected-error",
    "cover_budgets": "cube-root",
}
# How epsilon is divided: dp-subn over its four phases; the others over structure and parameters.
_SHARES: dict[tuple[Method, Preset], tuple[int, ...]] = {
    ("dp-subn", "paper"): (1, 1, 1, 1),
    ("dp-subn", "recommended"): (1, 3, 2, 14),
    ("dp-ccbn", "paper"): (1, 1),
    ("dp-ccbn", "recommended"): (1, 1),
    ("independent", "paper"): (3, 7),  # PrivBayes: beta = 0.3
    ("independent", "recommended"): (3, 7),
}
_PRIVBAYES_THETA = Fraction(4)
DEFAULT_KEY_BITS = 3072


def make_plan(
    run: str,
    schema: Schema,
    members: Sequence[Member],
    epsilon: Fraction,
    method: Method = "dp-subn",
    preset: Preset = "recommended",
    **wishes: Any,
) -> Plan:
    """The preset's plan with the operator's wishes in it (None means no wish)."""
    chosen = dict(PAPER if preset == "paper" else RECOMMENDED)
    if method == "independent":
        chosen["theta"] = _PRIVBAYES_THETA
    chosen |= {name: wish for name, wish in wishes.items() if wish is not None}
    variables = Encoding.of(schema, chosen["encoding"]).domain
    chosen.setdefault("score", _score(method, preset, variables.is_binary))
    chosen.setdefault("split", _split(method, preset, epsilon, chosen["update"], len(members)))
    chosen.setdefault("picks", _picks(preset, variables.count, [member.rows for member in members]))
    chosen.setdefault("key_bits", DEFAULT_KEY_BITS)
    chosen.setdefault("rows", sum(member.rows for member in members))
    try:
        return Plan(
            run=run,
            schema_hash=schema.hash,
            members=tuple(members),
            method=method,
            preset=preset,
            epsilon=epsilon,
            **chosen,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]).replace("_", " ")
        raise PlanError(f"{field} of {first['input']!r} cannot be planned: {first['msg']}") from None


def _score(method: Method, preset: Preset, is_binary: bool) -> str:
    if preset == "paper" and method != "independent":
        return "I"
    return "F" if is_binary else "R"


def _split(method: Method, preset: Preset, epsilon: Fraction, update: str, parties: int) -> tuple[Fraction, ...]:
    """Shares of epsilon that every party's price adds up to at most."""
    shares = allocate(epsilon, _SHARES[method, preset])
    if method == "dp-subn" and update == "replace":
        # Privacy: the first party pays for its rows' exposure in every later update too.
        e1, e2, e3, e4 = shares
        return e1, e2, e3 / parties, e4
    return shares


def _picks(preset: Preset, variables: int, rows: Sequence[int]) -> tuple[int, ...]:
    """Paper: floor(d/K) variables each, the last takes the rest. Else by rows, since a pick's noise falls with them."""
    if preset == "recommended":
        return proportional_counts(variables, rows)
    each = variables // len(rows)
    return (*[each] * (len(rows) - 1), variables - each * (len(rows) - 1))
