"""Promises of a run and their conditions, in the one wording for pages, reports and command lines.

It does not know data or runs; every sentence follows from the plan (`privacy.md` argues for them).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from protocol.plan.plan import Plan

_LARGEST_SAID = 7  # the largest epsilon whose factor is given in digits
_MOST_NAMED = 10  # parties in a sentence
_ROUND_NUMBERS = 1000  # a larger factor protects so little that exact digits would only flatter it
_CENTS = Decimal("0.01")
_UP = Context(prec=40, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Promise:
    """A sentence about privacy with its condition; neither is shown without the other."""

    text: str
    condition: str


@dataclass(frozen=True)
class People:
    """How many rows a person may have, and whether this party's table was checked for it."""

    rows: int = 1  # at a party
    parties: int = 1
    is_checked: bool = False  # by the party's person keys

    @property
    def limit(self) -> str:
        """The limit as the predicate of a sentence about a person."""
        if self.rows == self.parties == 1:
            return "one row, at one party"
        rows = "one row" if self.rows == 1 else f"at most {self.rows} rows"
        return f"{rows}, at {'one party' if self.parties == 1 else f'each of at most {self.parties} parties'}"

    @property
    def their_row(self) -> str:
        return "row" if self.rows == self.parties == 1 else "rows"


ONE_ROW = People()


def people_of(plan: Plan) -> People:
    return People(plan.rows_per_person, plan.parties_per_person)


def odds_factor(epsilon: Fraction) -> str:
    """Text of e^epsilon, rounded up so that it never claims more protection than there is."""
    if epsilon > _LARGEST_SAID:
        return f"more than {_ROUND_NUMBERS:,}"
    exponent = _UP.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # `exp` rounds to nearest whatever the context says: one more unit in the last place makes it an upper bound.
    factor = exponent.exp(_UP).next_plus(_UP) if epsilon else Decimal(1)
    return str(factor.quantize(_CENTS, ROUND_CEILING))


def about_one_person(epsilon: Fraction, delta: Fraction, is_over: bool = False, people: People = ONE_ROW) -> str:
    """The effect of a run on each person in the data owner's table; always shown with `owners_conditions`.

    Privacy: the sentences compare the values that one person's rows may hold. How far the odds of an attacker's
    guess differ before and after the run is not bounded by this factor, because rows can depend on each other.
    """
    if is_over and not epsilon:
        return "Nothing that depends on anybody's row left your table in this run."
    factor, leaves = odds_factor(epsilon), "has left" if is_over else "leaves"
    if epsilon > _LARGEST_SAID:
        return (
            "So much epsilon protects nobody: the odds of a statement about a person in your table may change by a "
            f"factor of {factor}, compared with that person's {people.their_row} holding other values."
        )
    if delta:
        return (
            f"With what {leaves} your table in this run, the chance of anything that an attacker may see changes by "
            f"at most a factor {factor}, plus delta = {delta}, compared with any one person's "
            f"{people.their_row} holding any other values."
        )
    return (
        f"With what {leaves} your table in this run, the odds of any statement about one person in it change by at "
        f"most a factor {factor}, compared with that person's {people.their_row} holding any other values."
    )


def owners_conditions(insiders: int, people: People = ONE_ROW) -> tuple[str, ...]:
    """Conditions of `about_one_person`; the first says from whom the people in the table are protected."""
    return (
        f"The people in your table are protected from {protected_from(insiders)}. They are not protected from the "
        "curator together with other parties.",
        f"Every person has {people.limit}. Anyone with {_more_rows(people)}, or with rows at "
        f"{'several' if people.parties == 1 else 'more'} parties, is protected less.",
        _checked_at_home(people),
        "The curator and the other parties follow the protocol, however curious they are.",
        "The number of your rows, the schema and the plan are public. The values in a person's row are protected.",
        "The promise holds except with a probability below 2^-94 (for epsilon up to 1), because the far tails of the "
        "noise are cut. It also depends on nobody breaking the cryptography.",
    )


def _more_rows(people: People) -> str:
    return "several rows" if people.rows == 1 else "more rows"


def _checked_at_home(people: People) -> str:
    elsewhere = "At how many parties a person has rows, nobody can check."
    if people.is_checked:
        return f"Rows per person at your hospital: checked, by your column of person keys. {elsewhere}"
    return f"Rows per person at your hospital: not checked: no person key. {elsewhere}"


def protected_from(insiders: int) -> str:
    """The curious from whom a row is protected, as the end of a sentence."""
    if not insiders:
        return "the curator and the public, but from none of the other parties"
    others = "any 1 other party" if insiders == 1 else f"any {insiders} other parties that pool what they know"
    return f"the curator, the public, and {others}"


def promises(plan: Plan) -> tuple[Promise, ...]:
    return (_loss(plan), _meaning(plan), _people(plan), _noise(plan), *_edges(plan), *_dependence(plan), _tails())


def not_promised() -> tuple[str, ...]:
    """Sentences about everything that a run does not protect."""
    return (
        "Row counts, the schema, the plan, the sizes of messages and the order of the steps are public.",
        "Facts about groups of people, such as shares in the whole table, can be learned; the table exists for that. "
        "The run limits only how much any one person's row adds to such facts.",
        "The costs of several runs over the same rows add up. Every party's own ledger keeps the sum.",
        "Protection is for the rows per person and the parties per person that the plan names: anyone with more is "
        "protected accordingly less.",
    )


def _loss(plan: Plan) -> Promise:
    return Promise(
        f"Whatever leaves a party in this run is {plan.definition.guarantee} for that party's rows, with ε at most "
        f"{plan.epsilon}{_and_delta(plan)}, where neighbouring tables differ in {_difference(plan)}. This holds "
        f"towards {_towards(plan)}.",
        "Everybody follows the protocol and only tries to learn from the messages that they see. The curator does not "
        f"pool what it knows with parties. {_one_person(plan)}",
    )


def _difference(plan: Plan) -> str:
    found = people_of(plan)
    return "one row's values" if found == ONE_ROW else f"the values of one person's rows ({found.limit})"


def _one_person(plan: Plan) -> str:
    found = people_of(plan)
    return "One person is one row at one party." if found == ONE_ROW else f"One person has {found.limit}."


def _people(plan: Plan) -> Promise:
    checked = [member.name for member in plan.members if member.rows_per_person is not None]
    unchecked = [member.name for member in plan.members if member.rows_per_person is None]
    told = [f"checked, by person keys, at {_named(checked)}"] if checked else []
    told += [f"not checked: no person key at {_named(unchecked)}"] if unchecked else []
    return Promise(
        f"This holds for everybody who has {people_of(plan).limit}.",
        f"Rows per person: {'; '.join(told)}. At how many parties a person has rows, nobody can check.",
    )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


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
    row = people_of(plan).their_row
    if plan.epsilon > _LARGEST_SAID:
        return Promise(
            "So much ε protects nobody: for somebody who sees everything that is published, the odds of a statement "
            f"about one person's {row} may change by a factor of {odds_factor(plan.epsilon)}, compared with the "
            f"{row} holding other values.",
            f"This is e^ε for ε = {plan.epsilon}. Whether an attacker gets that far depends on what else is known.",
        )
    if plan.delta:
        return Promise(
            f"For somebody who sees everything that is published, the chance of anything seen changes by at most a "
            f"factor {odds_factor(plan.epsilon)}, plus δ = {plan.delta}, compared with one person's {row} holding any "
            "other values.",
            f"This is e^ε for ε = {plan.epsilon}, on the conditions of the first promise. Over several runs over the "
            "same rows, factors multiply and δ adds up.",
        )
    return Promise(
        f"For somebody who sees everything that is published, the odds of any statement about one person's {row} "
        f"change by at most a factor {odds_factor(plan.epsilon)}, compared with the {row} holding any other values.",
        f"This is e^ε for ε = {plan.epsilon}, on the conditions of the first promise. Every further run over the same "
        "rows multiplies this factor by its own.",
    )


def _noise(plan: Plan) -> Promise:
    if plan.method == "independent":
        return Promise(
            "Every party adds the whole noise to its own tables.",
            "The network and tables of each party are published as that party's own.",
        )
    return Promise(*plan.noise_mode.promise)


def _edges(plan: Plan) -> tuple[Promise, ...]:
    if not plan.edges:
        return ()
    return (
        Promise(
            "The edges of bins that this run finds are as private as its other answers: they follow from noisy counts "
            "over a grid that the schema tells.",
            f"They are paid for: {plan.edges} of the budget goes to this count, before anything else is counted.",
        ),
    )


def _dependence(plan: Plan) -> tuple[Promise, ...]:
    if not plan.dependence:
        return ()
    return (
        Promise(
            "How strongly columns depend on each other is asked before pairs are counted, and the answer is as private "
            "as all others: one noisy number, which is published with what follows from it.",
            f"It is paid for: {plan.dependence} of the budget goes to this number.",
        ),
    )


def _tails() -> Promise:
    return Promise(
        "The noise is exact except with a probability δ, because its far tails are cut: δ is below 2⁻⁹⁴ for ε up to 1, "
        "and below (1 + e^ε) · 2⁻⁹⁶ beyond.",
        "The run draws noise fewer than 2³² times. Towards the curator and outsiders, the usual assumptions of "
        "cryptography hold as well (Paillier, X25519, AES, Ed25519).",
    )
