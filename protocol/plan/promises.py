"""What a run promises and on which conditions, in words: the one wording for pages, reports and command lines.

It does not know data or runs; every sentence follows from the plan (`privacy.md` argues for them).
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from protocol.plan.plan import Plan

_LARGEST_SAID = 7
_ROUND_NUMBERS = 1000  # a factor beyond this protects so little that digits would only flatter it
_CENTS = Decimal("0.01")
_UP = Context(prec=40, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Promise:
    """A sentence about privacy is never shown without its condition."""

    text: str
    condition: str


def odds_factor(epsilon: Fraction) -> str:
    """e^epsilon, rounded up, so that nothing better than the truth is said."""
    if epsilon > _LARGEST_SAID:
        return f"more than {_ROUND_NUMBERS:,}"
    exponent = _UP.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # `exp` rounds to nearest whatever the context says: one more unit in the last place makes it an upper bound.
    factor = exponent.exp(_UP).next_plus(_UP) if epsilon else Decimal(1)
    return str(factor.quantize(_CENTS, ROUND_CEILING))


def about_one_person(epsilon: Fraction, delta: Fraction, is_over: bool = False) -> str:
    """What a run means for each person in the data owner's table; shown with `owners_conditions` and no other way."""
    if is_over and not epsilon:
        return "Nothing left your party in this run that depends on anybody's row."
    factor, leaves = odds_factor(epsilon), "has left" if is_over else "leaves"
    if epsilon > _LARGEST_SAID:
        return f"So much epsilon protects nobody: an attacker's odds about a person may change by a factor {factor}."
    if delta:
        return (
            f"With what {leaves} your party in this run, the chance of anything that an attacker may see changes by "
            f"at most a factor {factor}, and by delta = {delta} besides, whatever values any one person has."
        )
    return (
        f"With what {leaves} your party in this run, an attacker's odds about any one person in your table change by "
        f"at most a factor {factor}."
    )


def owners_conditions(insiders: int) -> tuple[str, ...]:
    """What that depends on; the first says from whom one is protected."""
    return (
        f"You are protected from {protected_from(insiders)}; not from the curator together with other parties.",
        "Every person has one row, at one party. Who has several rows, or rows at several parties, is protected less.",
        "Everybody follows the protocol, however curious: the curator, and the other parties.",
        "The number of your rows, the schema and the plan are public. What is protected is which values a person has.",
        "It holds up to a probability below 2^-94 (up to epsilon 1) that the far tails of the noise are cut, and as "
        "long as nobody breaks the cryptography.",
    )


def protected_from(insiders: int) -> str:
    if not insiders:
        return "the curator and the public, but from none of the other parties"
    others = "any 1 other party" if insiders == 1 else f"any {insiders} other parties that pool what they know"
    return f"the curator, the public, and {others}"


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
        f"Whatever leaves a party in this run is {plan.definition.guarantee} for that party's rows, with ε at most "
        f"{plan.epsilon}{_and_delta(plan)} (tables that differ in one row's values are neighbours), towards "
        f"{_towards(plan)}.",
        "Everybody follows the protocol and only tries to learn from what is seen; the curator does not pool what it "
        "knows with parties; one person is one row at one party.",
    )


def _and_delta(plan: Plan) -> str:
    return f" and δ = {plan.delta}" if plan.delta else ""


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
    if plan.epsilon > _LARGEST_SAID:
        return Promise(
            "So much ε protects nobody: for somebody who sees all that is published, the odds of a statement about one "
            f"person's row may change by a factor of {odds_factor(plan.epsilon)}.",
            f"This is e^ε for ε = {plan.epsilon}; whether an attacker gets that far depends on what else is known.",
        )
    if plan.delta:
        return Promise(
            f"For somebody who sees all that is published, the chance of anything seen changes by at most a factor "
            f"{odds_factor(plan.epsilon)}, and by δ = {plan.delta} besides, compared with one person's row holding any "
            "other values.",
            f"This is e^ε for ε = {plan.epsilon}, on the conditions of the first promise; over several runs over the "
            "same rows factors multiply and δ adds up.",
        )
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
    return Promise(*plan.noise_mode.promise)


def _tails() -> Promise:
    return Promise(
        "The noise is exact to within a probability δ that its far tails are cut: below 2⁻⁹⁴ up to ε = 1, and "
        "below (1 + e^ε) · 2⁻⁹⁶ beyond.",
        "Fewer than 2³² draws of noise in the run; towards the curator and outsiders also the usual assumptions of "
        "cryptography (Paillier, X25519, AES, Ed25519).",
    )
