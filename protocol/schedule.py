"""The steps of a run in their order, who answers each and what it costs whom: known from the plan alone.

It does not know tables, messages or noise.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from protocol.plan import Plan

Stage = Literal["joining", "correlations", "initial", "update", "candidates", "models", "parameters", "finished"]

# Which stage may follow which; the picture in the README is drawn from this table, and every schedule obeys it.
TRANSITIONS: dict[str, dict[Stage, tuple[Stage, ...]]] = {
    "dp-subn": {
        "joining": ("correlations", "initial", "parameters"),
        "correlations": ("initial", "update", "parameters"),
        "initial": ("initial", "update", "parameters"),
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
    epsilon: Fraction = Fraction(0)  # what one exposure of a row costs: the noise follows from it
    charges: dict[int, Fraction] = field(default_factory=dict)  # what the step costs each party in all

    def charge(self, party: int) -> Fraction:
        return self.charges.get(party, Fraction(0))


def steps(plan: Plan, variables: int) -> tuple[Step, ...]:
    """All steps of a run over `variables` variables."""
    everybody = tuple(range(plan.parties))
    joining = Step("joining", "joining", everybody)
    if plan.method == "dp-subn":
        return (joining, *_dp_subn(plan, everybody))
    if plan.method == "dp-ccbn":
        return (joining, *_dp_ccbn(plan, everybody, variables))
    return (joining, _pass("models", "models", everybody, sum(plan.split, Fraction(0))))


def _pass(name: str, stage: Stage, everybody: tuple[int, ...], epsilon: Fraction) -> Step:
    return Step(name, stage, everybody, epsilon, dict.fromkeys(everybody, epsilon))


def _dp_subn(plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
    e1, e2, e3, e4 = plan.split
    found = []
    if e1:
        found.append(_pass("correlations", "correlations", everybody, e1))
    if e2:
        found += _initial(plan, e2)
    if e3:
        updates = {"accumulate": _accumulate, "replace": _replace, "joint": _joint}
        found += updates[plan.update](plan, everybody, e3)
    return [*found, _pass("parameters", "parameters", everybody, e4)]


def _initial(plan: Plan, epsilon: Fraction) -> list[Step]:
    found = []
    for party, picks in enumerate(plan.picks):
        if picks:
            # The very first variable is drawn blindly: it costs nothing (SPEC section 9, no. 6).
            is_private = picks > 1 or any(plan.picks[:party])
            charges = {party: epsilon} if is_private else {}
            found.append(Step(f"initial/{party + 1}", "initial", (party,), epsilon, charges))
    return found


def _accumulate(_plan: Plan, everybody: tuple[int, ...], epsilon: Fraction) -> list[Step]:
    return [Step(f"update/{k + 1}", "update", (k,), epsilon, {k: epsilon}) for k in everybody]


def _replace(plan: Plan, everybody: tuple[int, ...], epsilon: Fraction) -> list[Step]:
    # Privacy: the rows of party k are inside S_k, ..., S_K, each under fresh noise, so theorem 5 of the paper
    # does not hold; the exposures to come are charged when the first one is made (SPEC section 9, no. 5).
    return [
        Step(f"update/{k + 1}", "update", (k - 1, k) if k else (k,), epsilon, {k: (plan.parties - k) * epsilon})
        for k in everybody
    ]


def _joint(plan: Plan, everybody: tuple[int, ...], epsilon: Fraction) -> list[Step]:
    return [_pass(f"update/{r + 1}", "update", everybody, epsilon / plan.rounds) for r in range(plan.rounds)]


def _dp_ccbn(plan: Plan, everybody: tuple[int, ...], variables: int) -> list[Step]:
    e1, e2 = plan.split
    rounds = variables - 1 if e1 else 0
    found = [_pass(f"candidates/{i + 1}", "candidates", everybody, e1 / rounds) for i in range(rounds)]
    return [*found, _pass("parameters", "parameters", everybody, e2)]
