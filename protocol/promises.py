"""What a run promises and on which conditions, in words: the one wording for pages, reports and command lines.

It does not know data or runs; every sentence follows from the plan (`privacy.md` argues for them).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from protocol.plan import Plan

_ROUND_NUMBERS = 1000  # a factor beyond this protects so little that digits would only flatter it


@dataclass(frozen=True)
class Promise:
    """A sentence about privacy is never shown without its condition."""

    text: str
    condition: str


def odds_factor(epsilon: Fraction) -> str:
    """e^epsilon, rounded up, so that nothing better than the truth is said."""
    if epsilon > 7:
        return f"more than {_ROUND_NUMBERS:,}"
    return f"{math.ceil(math.exp(float(epsilon)) * 100) / 100:.2f}"


def promises(plan: Plan) -> tuple[Promise, ...]:
    return (_loss(plan), _meaning(plan), _noise(plan), _tails())


def not_promised() -> tuple[str, ...]:
    """What nobody should read into a run."""
    return (
        "Row counts, the schema, the plan, the sizes of messages and the order of the steps are public.",
        "A fact about a group of people, such as a share in the whole table, can be learned: that is what the table is "
        "for. What is limited is what any one person's row adds to it.",
        "Several runs over the same rows add up: every party's own ledger keeps the sum.",
        "A row is protected as one row: whoever has several rows, or rows at several parties, loses accordingly more.",
    )


def _loss(plan: Plan) -> Promise:
    return Promise(
        f"Whatever leaves a party in this run is ε-differentially private for that party's rows, with ε at most "
        f"{plan.epsilon} (tables that differ in one row's values are neighbours), towards {_towards(plan)}.",
        "Everybody follows the protocol and only tries to learn from what is seen; the curator does not pool what it "
        "knows with parties; one person is one row at one party.",
    )


def _towards(plan: Plan) -> str:
    if not plan.insiders:
        return (
            "the curator alone and the public, but not towards other parties, because the plan trusts every party "
            "(insiders = 0)"
        )
    others = (
        "any 1 other party" if plan.insiders == 1 else f"any {plan.insiders} other parties that pool what they know"
    )
    return f"the curator alone, the public, and {others} (insiders = {plan.insiders})"


def _meaning(plan: Plan) -> Promise:
    return Promise(
        f"For somebody who sees all that is published, the odds of any statement about one person's row change by at "
        f"most a factor {odds_factor(plan.epsilon)} compared with that row holding any other values.",
        f"This is e^ε for ε = {plan.epsilon}, on the conditions of the first promise; every further run over the same "
        "rows multiplies its own factor.",
    )


def _noise(plan: Plan) -> Promise:
    if plan.method == "independent":
        return Promise(
            "Every party adds the whole noise to its own tables.",
            "The network and tables of each party are published as that party's own.",
        )
    words = {
        "selected": (
            f"In every sum {plan.noise_shares} full {_shares(plan.noise_shares)} of noise stay in; nobody knows whose.",
            f"At most {plan.insiders} of the parties pool what they know, and the curator opens nothing but totals.",
        ),
        "distributed": (
            f"The noise in every sum comes from all parties; any {plan.parties - plan.insiders} of them "
            "add one full share of it.",
            f"At most {plan.insiders} of the parties pool what they know, and all others add their part of the noise.",
        ),
        "local": (
            "Every party adds the whole noise to each of its own contributions.",
            "The protection is the price's; the tables hold as many shares of noise as there are parties.",
        ),
    }
    return Promise(*words[plan.noise])


def _shares(count: int) -> str:
    return "share" if count == 1 else "shares"


def _tails() -> Promise:
    return Promise(
        "The noise is exact to within a probability δ that its far tails are cut: below 2⁻⁹⁴ up to ε = 1, and "
        "below (1 + e^ε) · 2⁻⁹⁶ beyond.",
        "Fewer than 2³² draws of noise in the run; towards the curator and outsiders also the usual assumptions of "
        "cryptography (Paillier, X25519, AES, Ed25519).",
    )
