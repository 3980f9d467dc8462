"""Plans from few words: the two presets, and what each method takes from them.

It does not know rows; `protocol.run.agreement` checks what comes out.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

from pydantic import ValidationError

from protocol.errors import PlanError
from protocol.exact import allocate, proportional_counts
from protocol.options import PICKING_RULES, Method, NoiseShape, Preset, Privacy
from protocol.plan.plan import Member, Plan, Views, Weighed
from protocol.plan.small_budgets import question
from protocol.plan.trees import wavelets_help
from protocol.plan.tuning import Tuning, tuned, views_pay
from protocol.privacy.mechanisms import DEFINITIONS, PrivacyDefinition
from protocol.privacy.noise_modes import NOISE_MODES
from protocol.tables.domain import Domain
from protocol.tables.encoding import Encoding
from protocol.tables.found_edges import counted
from protocol.tables.schema import Schema

DEFAULT_KEY_BITS = 3072
DEFAULT_DELTA = Fraction(1, 10**9)
THETA_OF_PRIVBAYES = Fraction(4)

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
# The methods that place whole families, and count what they placed.
PLACING: tuple[Method, ...] = ("privbayes", "privabn")
# The methods whose paper is PrivBayes, which has a theta and scores of its own.
BY_PRIVBAYES: frozenset[Method] = frozenset({"privbayes", "independent"})
# What has measured better, whichever network or model is made.
_SOUND: dict[str, Any] = {
    "insiders": 1,
    "noise": "selected",
    "encoding": "native",
    "choice": "permute-and-flip",
    "theta": Fraction(6),
    "frontier_theta": Fraction(2),
    "cover_objective": "expected-error",
    "cover_budgets": "cube-root",
}
# Pairs are picked and counted one by one, and one model hears every table. `tuning` adds views, further and split.
_PAIR_BY_PAIR: dict[str, Any] = {"score": "M", "table_budgets": "square-root", "estimate": "graphical-model"}
_SOUND_BY_METHOD: dict[Method, dict[str, Any]] = {
    "dp-subn": _SOUND | _PAIR_BY_PAIR | {"update": "turns", "rounds": 1},
    # `distributed` keeps K / (K - insiders) shares of noise; `selected` never fewer.
    "guided": _SOUND | _PAIR_BY_PAIR | {"noise": "distributed", "rounds": 1},
    "privbayes": _SOUND | {"noise": "distributed", "rounds": 1, "theta": THETA_OF_PRIVBAYES},
    "privabn": _SOUND | {"noise": "distributed", "rounds": 1, "theta": Fraction(2)},
    "jtree": _SOUND | {"noise": "distributed", "rounds": 1, "theta": Fraction(2)},
    "dp-ccbn": _SOUND | {"rounds": 1},
    "independent": _SOUND | {"rounds": 1, "theta": THETA_OF_PRIVBAYES},
}
# DP-SUBN with whole families of a network, where the operator wishes for what only they have.
_SOUND_FAMILIES: dict[str, Any] = _SOUND | {"update": "accumulate", "rounds": 2}
# What changes with a delta: the exponential mechanism costs a quarter, and Gaussian variance falls with the budget.
_WITH_DELTA: dict[Preset, dict[str, Any]] = {
    "paper": {"choice": "exponential", "delta": DEFAULT_DELTA},
    "sound": {"choice": "exponential", "delta": DEFAULT_DELTA, "cover_budgets": "square-root"},
}
# What changes where the model starts from single variables: noise hides some of their categories.
_FROM_SINGLE: dict[str, Any] = {"merging": True, "cover_budgets": "square-root"}
# How the budget is divided: dp-subn over its four phases; most others over structure and parameters.
_SHARES: dict[tuple[Method, Preset], tuple[int, ...]] = {
    ("dp-subn", "paper"): (1, 1, 1, 1),
    ("dp-subn", "sound"): (1, 3, 2, 14),
    ("guided", "sound"): (5, 2, 8, 5),
    ("privbayes", "paper"): (3, 7),  # beta = 0.3
    ("privbayes", "sound"): (3, 7),
    ("privabn", "paper"): (1, 1),
    ("privabn", "sound"): (3, 7),
    ("jtree", "paper"): (1, 1),
    ("jtree", "sound"): (1, 1),
    ("dp-ccbn", "paper"): (1, 1),
    ("dp-ccbn", "sound"): (1, 1),
    ("independent", "paper"): (3, 7),  # as PrivBayes
    ("independent", "sound"): (3, 7),
}


def make_plan(
    run: str,
    schema: Schema,
    members: Sequence[Member],
    epsilon: Fraction,
    method: Method = "guided",
    preset: Preset = "sound",
    weighed: tuple[Weighed, ...] = (),
    **wishes: Any,
) -> Plan:
    """The preset's plan with the operator's wishes in it (None means no wish)."""
    asked = {name: wish for name, wish in wishes.items() if wish is not None}
    _check_preset(method, preset)
    asked.setdefault("rows_per_person", max((member.rows_per_person or 1 for member in members), default=1))
    pair_by_pair = epsilon > 0 and picks_pairs(method, preset, asked)
    chosen = _preset(method, preset, pair_by_pair, asked.get("privacy", "pure")) | asked
    counted_schema = counted(schema, chosen.get("edges", Fraction(0)))
    variables = Encoding.of(counted_schema, chosen["encoding"]).domain
    if pair_by_pair:
        chosen |= _tuned(method, variables.sizes[: variables.count], members, epsilon, chosen) | asked
    elif _hears_everything(method, preset, chosen):
        chosen.setdefault("estimate", "graphical-model")
    chosen.setdefault("score", _score(method, preset, variables.is_binary))
    is_divided = "split" in chosen
    chosen["split"] = _split(method, preset, epsilon, len(members), chosen)
    if method in PLACING and not is_divided:
        chosen["split"] = _without_vain_picks(variables, members, chosen)
    if method == "jtree" and not is_divided and variables.count < 2:
        chosen["split"] = (Fraction(0), sum(chosen["split"], Fraction(0)))
    if method == "jtree":
        chosen.setdefault("views", _views_of_pairs(variables, members, chosen))
    chosen.setdefault("noise_shape", _noise_shape(preset, counted_schema, chosen))
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
            weighed=weighed,
            epsilon=epsilon,
            **chosen,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0]).replace("_", " ")
        raise PlanError(f"{field} of {first['input']!r} cannot be planned: {first['msg']}") from None


def _check_preset(method: Method, preset: Preset) -> None:
    if method == "guided" and preset == "paper":
        raise PlanError("method guided is in no paper: choose preset sound, or method dp-subn for the paper's phases")


def _hears_everything(method: Method, preset: Preset, chosen: dict[str, Any]) -> bool:
    """Whether rows are drawn from a model of every table: it needs whole attributes."""
    return method in ("dp-subn", "jtree", *PLACING) and preset == "sound" and chosen["encoding"] == "native"


def picks_pairs(method: Method, preset: Preset, asked: dict[str, Any]) -> bool:
    """Whether the plan picks and counts pair by pair, instead of whole families of a network."""
    if method == "guided":
        return True
    if method == "dp-subn" and (asked.get("update") in PICKING_RULES or asked.get("score") == "M"):
        return True
    return method == "dp-subn" and preset == "sound" and not wishes_families(asked)


def wishes_families(asked: dict[str, Any]) -> bool:
    """Whether something is wished that only networks of whole families have."""
    families = {"update", "score", "theta", "frontier_theta", "degree", "estimate", "picks"}
    return bool(asked.keys() & families) or asked.get("encoding", "native") != "native"


def _preset(method: Method, preset: Preset, pair_by_pair: bool, privacy: Privacy) -> dict[str, Any]:
    """The preset's values before tuning."""
    found = _SOUND_FAMILIES if method == "dp-subn" and not pair_by_pair else _SOUND_BY_METHOD[method]
    if preset == "paper":
        found = PAPER | ({"theta": THETA_OF_PRIVBAYES} if method in BY_PRIVBAYES else {})
        found = found if method == "dp-subn" else {name: value for name, value in found.items() if name != "update"}
    return found | (_WITH_DELTA[preset] if DEFINITIONS[privacy].needs_delta else {})


def _tuned(
    method: Method, sizes: Sequence[int], members: Sequence[Member], epsilon: Fraction, chosen: dict[str, Any]
) -> dict[str, Any]:
    """The preset's values that follow from the plan's public numbers."""
    definition = DEFINITIONS[chosen.get("privacy", "pure")]
    budget = _for_phases(definition, epsilon, chosen)
    rows, of_person = (
        [member.rows for member in members],
        chosen["rows_per_person"] * chosen.get("parties_per_person", 1),
    )
    ways = chosen.get("ways", 2)

    def divided(whole: Fraction) -> Tuning:
        return tuned(method, sizes, rows, definition.of_row(whole, of_person), definition, chosen["insiders"], ways)

    found, asked = divided(budget), dict[str, Any]()
    if found.views == "pairs" and _may_ask(chosen):
        asked = _asked(sizes, rows, definition.of_row(budget, of_person), definition, chosen)
        left = _for_phases(definition, epsilon, chosen | asked)
        if divided(left).views == "pairs":
            budget, found = left, divided(left)
        else:  # what the question leaves would not bear views
            asked = {}
    views = chosen.get("views", found.views)
    values = {"views": views, "further": found.further, "split": found.split(budget)} | asked
    values |= {"rounds": found.rounds} if method == "guided" else {}
    return values | (_FROM_SINGLE if views != "pairs" else {})


def _may_ask(chosen: dict[str, Any]) -> bool:
    """Whether nothing is wished that decides for or against views."""
    decided = {"views", "split", "dependence", "alone_below"}
    return decided.isdisjoint(chosen) and chosen["cover_objective"] == "expected-error"


def _asked(
    sizes: Sequence[int], rows: Sequence[int], budget: Fraction, definition: PrivacyDefinition, chosen: dict[str, Any]
) -> dict[str, Any]:
    """The question how strongly columns depend, where it is worth its part of the budget."""
    parties, insiders = len(rows), chosen["insiders"]
    mode = NOISE_MODES[chosen["noise"]](definition, parties, insiders, DEFAULT_KEY_BITS)
    shares = float(mode.shares) if parties > insiders else 1.0
    found = question(sizes, sum(rows), budget, definition, shares, chosen["cover_budgets"])
    return {"dependence": found.part, "alone_below": found.alone_below} if found else {}


def _score(method: Method, preset: Preset, is_binary: bool) -> str:
    if preset == "paper" and method not in BY_PRIVBAYES:
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
    budget = _for_phases(definition, epsilon, chosen)
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


def _without_vain_picks(domain: Domain, members: Sequence[Member], chosen: dict[str, Any]) -> tuple[Fraction, ...]:
    """The split; all of it for the tables, where theta lets no variable have a parent (PrivBayes, section 6.4)."""
    structure, parameters = chosen["split"]
    definition, rows = DEFINITIONS[chosen.get("privacy", "pure")], sum(member.rows for member in members)
    of_person = chosen["rows_per_person"] * chosen.get("parties_per_person", 1)
    tables = domain.count - (domain.is_binary and chosen.get("family_tables") != "every")
    cells = definition.useful_cells(rows, max(1, tables), definition.of_row(parameters, of_person), chosen["theta"])
    smallest = prod(sorted(domain.sizes[: domain.count])[:2])
    has_parents = cells >= smallest and chosen.get("degree") != 0
    return (structure, parameters) if has_parents else (Fraction(0), structure + parameters)


def _views_of_pairs(domain: Domain, members: Sequence[Member], chosen: dict[str, Any]) -> Views:
    """Views of whole columns where they pay or where bits are modelled, and of halves elsewhere."""
    definition, budget = DEFINITIONS[chosen.get("privacy", "pure")], chosen["split"][0]
    if domain.is_binary or chosen.get("estimate") != "graphical-model" or not budget:
        return "pairs"
    of_person = chosen["rows_per_person"] * chosen.get("parties_per_person", 1)
    rows, sizes = [member.rows for member in members], domain.sizes[: domain.count]
    pays = views_pay(sizes, rows, definition.of_row(budget, of_person), definition, chosen["insiders"])
    return "pairs" if pays else "halves"


def _noise_shape(preset: Preset, counted_schema: Schema, chosen: dict[str, Any]) -> NoiseShape:
    """Wavelets where whole columns are counted alone and the counts of their ranges gain much by them."""
    counts_columns = preset == "sound" and chosen.get("views", "pairs") != "pairs" and chosen["encoding"] == "native"
    definition = DEFINITIONS[chosen.get("privacy", "pure")]
    return "wavelet" if counts_columns and wavelets_help(counted_schema, definition) else "cells"


def _for_phases(definition: PrivacyDefinition, epsilon: Fraction, chosen: dict[str, Any]) -> Fraction:
    """The budget that is left for the phases where a part of it finds edges, or how columns depend on each other."""
    part: Fraction = chosen.get("edges", Fraction(0)) + chosen.get("dependence", Fraction(0))
    return definition.budget(epsilon, chosen.get("delta", Fraction(0))) * (1 - part)


def _is_replaced(method: Method, chosen: dict[str, Any]) -> bool:
    return method == "dp-subn" and chosen.get("update") == "replace"


def _picks(preset: Preset, variables: int, rows: Sequence[int]) -> tuple[int, ...]:
    """Paper: floor(d/K) variables each, the last takes the rest. Else by rows, since a pick's noise falls with them."""
    if preset == "sound":
        return proportional_counts(variables, rows)
    each = variables // len(rows)
    return (*[each] * (len(rows) - 1), variables - each * (len(rows) - 1))
