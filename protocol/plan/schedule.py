"""The steps of a run in their order, who answers each and what it costs whom: known from the plan alone.

It does not know tables, messages or noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Literal

from protocol.plan.plan import Plan
from protocol.privacy.zcdp import epsilon_of

_UNITS = 10**9  # of epsilon, to which charges of zcdp are rounded

Stage = Literal[
    "joining",
    "correlations",
    "initial",
    "tables",
    "further",
    "update",
    "candidates",
    "models",
    "parameters",
    "finished",
]

# Which stage may follow which; the picture in docs/protocol.md is drawn from this table, and every schedule obeys it.
TRANSITIONS: dict[str, dict[Stage, tuple[Stage, ...]]] = {
    "dp-subn": {
        "joining": ("correlations", "initial", "parameters"),
        "correlations": ("initial", "update", "parameters"),
        "initial": ("initial", "tables", "update", "parameters"),
        "tables": ("further",),
        "further": ("further", "tables", "parameters"),
        "update": ("update", "parameters"),
        "parameters": ("finished",),
    },
    "dp-ccbn": {
        "joining": ("candidates", "parameters"),
        "candidates": ("candidates", "parameters"),
        "parameters": ("finished",),
    },
    "independent": {"joining": ("models",), "models": ("finished",)},
}


@dataclass(frozen=True)
class Step:
    name: str
    stage: Stage
    parties: tuple[int, ...]  # who answers
    budget: Fraction = Fraction(0)  # the epsilon or rho of one exposure of a row: the noise follows from it
    spends: dict[int, Fraction] = field(default_factory=dict)  # the epsilon or rho of all exposures, by party
    charges: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)  # by party: the epsilon and delta of it

    def charge(self, party: int) -> Fraction:
        """The epsilon that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[0]

    def delta(self, party: int) -> Fraction:
        return self.charges.get(party, (Fraction(0), Fraction(0)))[1]


def steps(plan: Plan, variables: int) -> tuple[Step, ...]:
    """All steps of a run over `variables` variables."""
    everybody = tuple(range(plan.parties))
    joining = Step("joining", "joining", everybody)
    if plan.method == "dp-subn":
        found = _dp_subn(plan, everybody)
    elif plan.method == "dp-ccbn":
        found = _dp_ccbn(plan, everybody, variables)
    else:
        found = [_pass("models", "models", everybody, sum(plan.split, Fraction(0)))]
    return tuple(_priced(plan, [joining, *found]))


def _priced(plan: Plan, found: Sequence[Step]) -> Iterator[Step]:
    """The steps with their charges.

    Privacy: rho adds up and epsilon(rho) is concave, so that with zcdp a step costs what it adds to the epsilon of
    all steps before it: a run that ends early has cost the epsilon of what was answered.
    """
    spent = dict.fromkeys(range(plan.parties), Fraction(0))
    for step in found:
        charges = {}
        for party, spend in step.spends.items():
            before, after = spent[party], spent[party] + spend
            epsilon = _worth(plan, after) - _worth(plan, before)
            charges[party] = (epsilon, Fraction(0) if before else plan.delta)
            spent[party] = after
        yield replace(step, charges=charges)


def _worth(plan: Plan, spent: Fraction) -> Fraction:
    """The epsilon of what a party has spent of the plan's budget: with zcdp rounded up, but not beyond the plan's."""
    if plan.privacy == "pure" or not spent:
        return spent
    least = epsilon_of(spent, plan.delta)
    rounded = Fraction(ceil(least * _UNITS), _UNITS)
    return plan.epsilon if least <= plan.epsilon < rounded else rounded


def _pass(name: str, stage: Stage, everybody: tuple[int, ...], budget: Fraction) -> Step:
    return Step(name, stage, everybody, budget, dict.fromkeys(everybody, budget))


def _dp_subn(plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
    e1, e2, e3, e4 = plan.split
    found = []
    if e1:
        found.append(_pass("correlations", "correlations", everybody, e1))
    if e2:
        found += _initial(plan, e2 / (1 + plan.guided_rounds))
    if plan.guided_rounds:
        found += _guided(plan, everybody, e2 / (1 + plan.guided_rounds), e3 / plan.guided_rounds)
    elif e3 and plan.update != "guided":
        updates = {"accumulate": _accumulate, "replace": _replace, "joint": _joint}
        found += updates[plan.update](plan, everybody, e3)
    return [*found, _pass("parameters", "parameters", everybody, e4)]


def _initial(plan: Plan, budget: Fraction) -> list[Step]:
    found = []
    for party, picks in enumerate(plan.picks):
        if picks:
            # The very first variable is drawn blindly: it costs nothing (protocol/papers.md, no. 6).
            is_private = picks > 1 or any(plan.picks[:party])
            spends = {party: budget} if is_private else {}
            found.append(Step(f"initial/{party + 1}", "initial", (party,), budget, spends))
    return found


def _guided(plan: Plan, everybody: tuple[int, ...], for_picks: Fraction, for_tables: Fraction) -> list[Step]:
    """Each round measures what was picked before, and then every party picks what the model still answers worst."""
    found = []
    for round_ in range(plan.guided_rounds):
        found.append(_pass(f"tables/{round_ + 1}", "tables", everybody, for_tables))
        for party, picks in enumerate(plan.further):
            if picks:
                name = f"further/{round_ * plan.parties + party + 1}"
                found.append(Step(name, "further", (party,), for_picks, {party: for_picks}))
    return found


def _accumulate(_plan: Plan, everybody: tuple[int, ...], budget: Fraction) -> list[Step]:
    return [Step(f"update/{k + 1}", "update", (k,), budget, {k: budget}) for k in everybody]


def _replace(plan: Plan, everybody: tuple[int, ...], budget: Fraction) -> list[Step]:
    # Privacy: the rows of party k are inside S_k, ..., S_K, each under fresh noise, so theorem 5 of the paper
    # does not hold; the exposures to come are charged when the first one is made (protocol/papers.md, no. 5).
    return [
        Step(f"update/{k + 1}", "update", (k - 1, k) if k else (k,), budget, {k: (plan.parties - k) * budget})
        for k in everybody
    ]


def _joint(plan: Plan, everybody: tuple[int, ...], budget: Fraction) -> list[Step]:
    return [_pass(f"update/{r + 1}", "update", everybody, budget / plan.rounds) for r in range(plan.rounds)]


def _dp_ccbn(plan: Plan, everybody: tuple[int, ...], variables: int) -> list[Step]:
    e1, e2 = plan.split
    rounds = variables - 1 if e1 else 0
    found = [_pass(f"candidates/{i + 1}", "candidates", everybody, e1 / rounds) for i in range(rounds)]
    return [*found, _pass("parameters", "parameters", everybody, e2)]
