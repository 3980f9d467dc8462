"""Plans from few words: the two presets, and what each method takes from them.

It does not know rows; `protocol.run.agreement` checks what comes out.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from protocol.errors import PlanError
from protocol.exact import allocate, proportional_counts
from protocol.options import Method, Preset, Privacy
from protocol.plan.plan import Member, Plan
from protocol.plan.tuning import tuned
from protocol.privacy.mechanisms import DEFINITIONS
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema

DEFAULT_KEY_BITS = 3072
DEFAULT_DELTA = Fraction(1, 10**9)

# What the papers say, where it can be said honestly.
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
# What has measured better, whichever network or model is made.
_BETTER: dict[str, Any] = {
    "insiders": 1,
    "encoding": "native",
    "choice": "permute-and-flip",
    "theta": Fraction(6),
    "frontier_theta": Fraction(2),
    "cover_objective": "expected-error",
    "cover_budgets": "cube-root",
}
# What is recommended: a model of everything that was counted picks what is counted next. `tuning` adds rounds, views,
# further and split, by the plan's public numbers.
RECOMMENDED: dict[str, Any] = _BETTER | {
    "noise": "distributed",  # keeps K / (K - insiders) shares of noise; `selected` never fewer
    "update": "guided",
    "score": "M",
    "table_budgets": "square-root",
    "estimate": "graphical-model",
}
# The papers' networks with better settings: for the methods beside dp-subn, and for wishes that rule the model out.
RECOMMENDED_NETWORKS: dict[str, Any] = _BETTER | {"noise": "selected", "update": "accumulate", "rounds": 2}
_INDEPENDENT = {"theta": Fraction(4)}  # PrivBayes
# What changes with a delta: the exponential mechanism costs a quarter, and Gaussian variance falls with the budget.
_WITH_DELTA: dict[Preset, dict[str, Any]] = {
    "paper": {"choice": "exponential", "delta": DEFAULT_DELTA},
    "recommended": {"choice": "exponential", "delta": DEFAULT_DELTA, "cover_budgets": "square-root"},
}
# What changes where the model starts from single variables: noise hides some of their categories.
_SINGLE_VIEWS: dict[str, Any] = {"merging": True, "cover_budgets": "square-root"}
# How the budget is divided: dp-subn over its four phases; the others over structure and parameters.
_SHARES: dict[tuple[Method, Preset], tuple[int, ...]] = {
    ("dp-subn", "paper"): (1, 1, 1, 1),
    ("dp-subn", "recommended"): (1, 3, 2, 14),
    ("dp-ccbn", "paper"): (1, 1),
    ("dp-ccbn", "recommended"): (1, 1),
    ("independent", "paper"): (3, 7),  # PrivBayes: beta = 0.3
    ("independent", "recommended"): (3, 7),
}


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
    asked = {name: wish for name, wish in wishes.items() if wish is not None}
    has_model = method == "dp-subn" and preset == "recommended" and epsilon > 0 and _leaves_the_choice(asked)
    chosen = _preset(method, preset, has_model, asked.get("privacy", "pure")) | asked
    variables = Encoding.of(schema, chosen["encoding"]).domain
    if has_model:
        chosen |= _tuned(variables.sizes[: variables.count], members, epsilon, chosen) | asked
    chosen.setdefault("score", _score(method, preset, variables.is_binary))
    chosen["split"] = _split(method, preset, epsilon, len(members), chosen)
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


def _preset(method: Method, preset: Preset, has_model: bool, privacy: Privacy) -> dict[str, Any]:
    """The preset's values before tuning."""
    found = PAPER if preset == "paper" else RECOMMENDED if has_model else RECOMMENDED_NETWORKS
    for_method = _INDEPENDENT if method == "independent" else {}
    return found | for_method | (_WITH_DELTA[preset] if DEFINITIONS[privacy].needs_delta else {})


def _leaves_the_choice(asked: dict[str, Any]) -> bool:
    """Whether nothing is wished that belongs to the networks of the papers instead of the model."""
    if asked.get("update") == "guided" or asked.get("score") == "M":
        return True
    classical = {"update", "score", "encoding", "theta", "frontier_theta", "degree", "split", "estimate", "picks"}
    return asked.keys() & classical <= {"encoding"} and asked.get("encoding", "native") == "native"


def _tuned(
    sizes: Sequence[int], members: Sequence[Member], epsilon: Fraction, chosen: dict[str, Any]
) -> dict[str, Any]:
    """The preset's values that follow from the plan's public numbers."""
    privacy = chosen.get("privacy", "pure")
    definition = DEFINITIONS[privacy]
    budget = definition.budget(epsilon, chosen.get("delta", Fraction(0)))
    found = tuned(sizes, [member.rows for member in members], budget, definition, chosen["insiders"])
    views = chosen.get("views", found.views)
    values = {"rounds": found.rounds, "views": views, "further": found.further, "split": found.split(budget)}
    return values | (_SINGLE_VIEWS if views == "single" else {})


def _score(method: Method, preset: Preset, is_binary: bool) -> str:
    if preset == "paper" and method != "independent":
        return "I"
    return "F" if is_binary else "R"


def _split(
    method: Method, preset: Preset, epsilon: Fraction, parties: int, chosen: dict[str, Any]
) -> tuple[Fraction, ...]:
    """Shares of the budget that every party's price adds up to at most; wishes with a delta are its proportions."""
    definition = DEFINITIONS[chosen.get("privacy", "pure")]
    wanted: Sequence[Fraction] | None = chosen.get("split")
    if wanted is not None and not definition.needs_delta:
        return tuple(wanted)
    budget = definition.budget(epsilon, chosen.get("delta", Fraction(0)))
    if wanted is not None:
        # Privacy: the first party pays for its rows' exposure in every later update too.
        exposures = [parties if _is_replaced(method, chosen) and phase == 2 else 1 for phase in range(len(wanted))]
        whole = sum((share * times for share, times in zip(wanted, exposures, strict=True)), Fraction(0))
        return tuple(budget * share / whole if whole else share for share in wanted)
    shares = allocate(budget, _SHARES[method, preset])
    if _is_replaced(method, chosen):
        e1, e2, e3, e4 = shares
        return e1, e2, e3 / parties, e4
    return shares


def _is_replaced(method: Method, chosen: dict[str, Any]) -> bool:
    return method == "dp-subn" and chosen["update"] == "replace"


def _picks(preset: Preset, variables: int, rows: Sequence[int]) -> tuple[int, ...]:
    """Paper: floor(d/K) variables each, the last takes the rest. Else by rows, since a pick's noise falls with them."""
    if preset == "recommended":
        return proportional_counts(variables, rows)
    each = variables // len(rows)
    return (*[each] * (len(rows) - 1), variables - each * (len(rows) - 1))
