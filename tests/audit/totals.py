"""What is seen of tables: totals of secure sums in every noise mode, and a party's own noisy tables.

It does not know picks or whole runs.

A batch is one real run over a table of 8,192 cells, masks, ciphertexts and all. Each pair of cells is one trial: on the
first table the attacked party holds one row in the first cell of each pair, on the second one in the second cell. The
noise of different cells is independent, so a pair is what a table shows in which one row has moved. The attacker
knows all other rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from crypto.paillier_secret import SecretKey
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.privacy.noise_modes import Distributed, NoiseMode
from protocol.run.agreement import agree
from protocol.tables.counting import Rows
from tests.audit.bounds import Scores
from tests.audit.laws import Noise, shares, spent
from tests.audit.quantity import Quantity, charged
from tests.statistical.test_retained_noise import WIDE
from tests.support.small_runs import SMALL_BITS, Driver, terms_of

CELLS = 8192
PARTIES = 3
ROWS = (CELLS // 2,) * PARTIES
DELTA = Fraction(1, 10**5)
STEP = "correlations"


@dataclass(frozen=True)
class Person:
    """How many rows a person has at each of how many parties: all of them move together."""

    rows: int = 1
    parties: int = 1

    @property
    def all_rows(self) -> int:
        return self.rows * self.parties


ONE_ROW = Person()


@lru_cache(maxsize=1)
def secret() -> SecretKey:
    return SecretKey.generate(SMALL_BITS)


def codes(second: bool, rows: int = 1) -> list[Any]:
    """So many rows in every other cell."""
    cells = np.repeat(np.arange(int(second), CELLS, 2), rows)
    return [(cells // 64).astype(np.uint8), (cells % 64).astype(np.uint8)]


def terms(noise: str, privacy: str, insiders: int = 1, **wishes: Any) -> Terms:
    """A plan whose first step counts one table of all cells, at epsilon 1 with pure privacy."""
    options = {"split": (1, 0, 0, 1), "delta": DELTA} if privacy == "zcdp" else {"split": (1, 0, 0, 1)}
    rows = [count * wishes.get("rows_per_person", 1) for count in ROWS]
    return terms_of(WIDE, rows, 2, noise=noise, privacy=privacy, insiders=insiders, **(options | wishes))


@contextmanager
def remembered() -> Iterator[list[Vector]]:
    """The noise that each party draws for a pass, in the order of parties: what an insider knows of its own."""
    drawn: list[Vector] = []

    def kept(original: Any) -> Any:
        def own_noise(mode: NoiseMode, layout: Any, stream: Any) -> Vector:
            noise: Vector = original(mode, layout, stream)
            drawn.append(noise)
            return noise

        return own_noise

    with (
        patch.object(NoiseMode, "own_noise", kept(NoiseMode.own_noise)),
        patch.object(Distributed, "own_noise", kept(Distributed.own_noise)),
    ):
        yield drawn


def released(plan: Terms, second: bool, person: Person = ONE_ROW) -> tuple[Vector, Vector]:
    """What a pass releases beyond the other parties' rows, and the noise of the last party, the insider."""
    rows, others = plan.plan.members[0].rows * 2 // CELLS, PARTIES - person.parties
    moved = [codes(second, person.rows)] * person.parties
    with remembered() as drawn:
        run = Driver(plan, [*moved, *[codes(False, rows)] * others], secret(), entropy=True)
        run.run_to(STEP).finish_step()
    (table,) = [found.table for found in run.state.knowledge.released]
    known = Rows(plan.domain, codes(False, rows)).table(table.variables)
    return (table.counts - others * known).ravel(), drawn[-1]


def without_own(plan: Terms, second: bool, person: Person = ONE_ROW) -> Vector:
    """The same without the insider's noise. In `selected`, runs that did not keep its noise tell less and are left out.

    All pairs of cells of a run share whether the noise was kept. They are independent trials given that it was, which
    an insider tells by the variance.
    """
    while True:
        found, own = released(plan, second, person)
        if plan.plan.noise != "selected" or np.var(found - own) < np.var(found):
            return found - own


def scores(noise: Noise, seen: NDArray[np.int64], rows: int = 1) -> Scores:
    """By how much each pair of cells speaks for the first table, where all noise but this is known."""
    return noise.loss(seen[0::2], rows) - noise.loss(seen[1::2], rows)


def total(noise: str, privacy: str, insider: bool, person: Person = ONE_ROW, said: Person | None = None) -> Quantity:
    """A total as the curator sees it, or a party that knows its own noise.

    The plan says how many rows a person has: those that the person has, or on purpose `said`, which are fewer.
    """
    named = said or person
    # The plan knows the rows that the parties hold: a plan that understates a person's rows does not change them.
    plan = terms(noise, privacy, rows_per_person=person.rows, parties_per_person=named.parties)
    if named.rows < person.rows:
        plan = agree(plan.plan.model_copy(update={"rows_per_person": named.rows}), plan.schema, SMALL_BITS)
    step = plan.steps[1]
    drawing = plan.plan.noise_shares if noise == "selected" else PARTIES
    rate = plan.plan.definition.rate(step.budget)
    left = shares(privacy, noise, rate, drawing - insider, PARTIES - plan.plan.insiders)

    def attack(second: bool) -> Scores:
        seen = without_own(plan, second, person) if insider else released(plan, second, person)[0]
        return scores(left, seen, person.all_rows)

    exact = spent(*left.table_losses(person.all_rows), float(step.delta(0)))
    return Quantity(step.charge(0), step.delta(0), attack, exact, is_broken=named != person)


# A party's own tables: the updates of phase 3


def own_tables(privacy: str) -> Quantity:
    """A party's noisy tables with update=accumulate."""
    plan = update_terms("accumulate", privacy)
    step = next(step for step in plan.steps if step.name == "update/1")
    left = shares(privacy, "local", plan.plan.definition.rate(step.budget), 1, 1)

    price, delta = charged(plan.plan.definition, step.budget, plan.plan.delta)
    exact = spent(*left.table_losses(), float(delta))
    return Quantity(price, delta, lambda second: scores(left, updates(plan, second, count=1)[0]), exact)


def replaced(as_the_paper: bool) -> Quantity:
    """All statistics of update=replace, which hold the first party's rows again and again.

    The paper's theorem 5 counts them once (protocol/papers.md, no. 5).
    """
    plan = update_terms("replace", "pure")
    step = next(step for step in plan.steps if step.name == "update/1")
    left = shares("pure", "local", plan.plan.definition.rate(step.budget), 1, 1)

    def attack(second: bool) -> Scores:
        return np.sum([scores(left, seen) for seen in updates(plan, second, PARTIES)], axis=0)

    price = step.budget if as_the_paper else step.charge(0)
    return Quantity(price, Fraction(0), attack, is_broken=as_the_paper)


def updates(plan: Terms, second: bool, count: int) -> list[NDArray[np.int64]]:
    """The first sufficient statistics, without the rows of all parties but the first."""
    run = Driver(plan, [codes(second), *[codes(False)] * (PARTIES - 1)], entropy=True)
    found = []
    for others in range(count):
        run.run_to(f"update/{others + 1}").finish_step()
        (statistic,) = run.state.knowledge.statistics.values()
        known = Rows(plan.domain, codes(False)).table(statistic.table.variables)
        counts = statistic.table.counts - others * known
        found.append((counts.T if statistic.table.variables == (1, 0) else counts).ravel())
    return found


def update_terms(update: str, privacy: str) -> Terms:
    """A plan with updates at epsilon 1 each; usefulness never forbids a family."""
    tiny = Fraction(1, 10**9)
    split = (1, 0, 1, 1) if update == "accumulate" else (1, 0, 1, 2)
    options = {"delta": DELTA} if privacy == "zcdp" else {}
    epsilon = 3 if update == "accumulate" else 3 + PARTIES
    wishes = {"split": split, "insiders": 0, "noise": "local", "update": update, "theta": tiny, "frontier_theta": tiny}
    return terms_of(WIDE, ROWS, epsilon, privacy=privacy, **(wishes | options))
