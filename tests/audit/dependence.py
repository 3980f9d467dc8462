"""What is seen of the number by which columns depend on each other.

It does not know tables (`tests.audit.totals`).

A batch is many trials of one number: the stage's own number of the attacked party on two neighbouring tables for which
it differs by its sensitivity, at the stage's own rate, with the noise of all parties but the insider. Masks and
messages are those of every pass. The attacker knows all other rows.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any
from unittest.mock import patch

import numpy as np

from crypto.randomness import Stream
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.stages import dependence
from protocol.stages.registry import stage_of
from protocol.tables.counting import Rows
from protocol.tables.dependence import sensitivity
from protocol.tables.schema import Schema
from tests.audit.bounds import Scores
from tests.audit.laws import shares
from tests.audit.quantity import Quantity, charged
from tests.audit.totals import DELTA
from tests.support.small_runs import terms_of

PARTIES, ROWS, TRIALS = 3, 9, 4096
PAIR = Schema.parse({"attributes": [{"name": name, "kind": "boolean"} for name in "ab"]})
Table = tuple[tuple[int, ...], ...]


def terms(privacy: str) -> Terms:
    """A plan of whose epsilon 2 the question takes one half."""
    options: dict[str, Any] = {"privacy": "zcdp", "delta": DELTA} if privacy == "zcdp" else {}
    asking = {"views": "pairs", "dependence": Fraction(1, 2), "alone_below": Fraction(1, 5)}
    return terms_of(PAIR, (ROWS,) * PARTIES, 2, method="guided", noise="distributed", insiders=1, **asking, **options)


def number(privacy: str, is_broken: bool = False) -> Quantity:
    """The number as it is, or with noise for a row that moves it by one alone."""
    plan = terms(privacy)
    step, definition = plan.steps[1], plan.plan.definition
    stage = stage_of(plan, step)
    assert step.stage == "dependence"
    price, delta = charged(definition, step.budget, plan.plan.delta)
    numbers = _numbers(plan)
    with patch.object(dependence, "sensitivity", (lambda _: 1) if is_broken else sensitivity):
        (rate,) = stage.noise_rates(plan, step, (1,))
    left = shares(privacy, "distributed", rate, PARTIES - 1, PARTIES - 1)
    layout = Layout((TRIALS,), (rate,), plan.plan.total_rows)

    def attack(second: bool) -> Scores:
        noise = sum(plan.plan.noise_mode.own_noise(layout, Stream.system()) for _ in range(PARTIES - 1))
        return left.loss(noise + numbers[second] - numbers[1], numbers[0] - numbers[1])

    return Quantity(price, delta, attack, is_broken=is_broken)


def _numbers(plan: Terms) -> tuple[int, int]:
    """The stage's numbers of two neighbouring tables that differ most."""
    stage = stage_of(plan, plan.steps[1])
    assert isinstance(stage, dependence.ColumnDependence)
    values = list(product(range(2), repeat=2))

    def of(table: Table) -> int:
        columns = [np.array(column, dtype=np.uint8) for column in zip(*table, strict=True)]
        return int(stage.counted(plan, Rows(plan.domain, columns), ((),))[0])

    neighbours = (
        (of((*rest, one)), of((*rest, other)))
        for rest in combinations_with_replacement(values, ROWS - 1)
        for one, other in product(values, values)
    )
    return max(neighbours, key=lambda found: found[0] - found[1])
