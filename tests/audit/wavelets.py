"""What is seen of columns with wavelet noise: all coefficients of the pass over single columns.

It does not know tables with plain noise (`tests.audit.totals`).

A batch is one real run over many columns, and each column is one trial at its share of the pass: the attacked party's
row lies at one of two categories whose exchange is the dearest. The attacker knows all other rows.
"""

from fractions import Fraction
from unittest.mock import patch

import numpy as np

from protocol.plan.terms import Terms
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.privacy.wavelets import MANY, Wavelet
from protocol.tables.schema import Schema
from tests.audit.bounds import Scores
from tests.audit.laws import Noise, shares
from tests.audit.quantity import Quantity, charged
from tests.audit.totals import DELTA
from tests.support.small_runs import Driver, layout_of, terms_of

COLUMNS, PARTIES = 150, 2
FIRST, SECOND = 0, MANY - 1  # in the two halves of the root, each in a node of every level below it
SCHEMA = Schema.parse(
    {"attributes": [{"name": f"c{k}", "kind": "integer", "min": 0, "max": MANY - 1} for k in range(COLUMNS)]}
)


def terms(privacy: str) -> Terms:
    """A plan whose first pass has epsilon 1 for every column, with pure privacy; with zcdp, all of the plan's rho."""
    options = {"privacy": "zcdp", "delta": DELTA} if privacy == "zcdp" else {}
    wishes = {"method": "guided", "noise": "distributed", "insiders": 0, "split": (COLUMNS, 0, 0, 1)}
    return terms_of(SCHEMA, (1, 1), COLUMNS + 1, noise_shape="wavelet", rounds=1, further=(0, 0), **wishes, **options)


def wavelets(privacy: str, is_broken: bool = False) -> Quantity:
    """The pass as it is, or priced as if a row were in a coefficient of one level alone."""
    plan = terms(privacy)
    step, definition = plan.steps[1], plan.plan.definition
    assert step.stage == "levels"
    budget = step.budget / COLUMNS
    price, delta = charged(definition, budget, plan.plan.delta)
    honest = Wavelet.shares

    def one_level(wavelet: Wavelet, _definition: PrivacyDefinition) -> tuple[Fraction, ...]:
        return (Fraction(1),) * len(wavelet.tree.levels)

    def attack(second: bool) -> Scores:
        with patch.object(Wavelet, "shares", one_level if is_broken else honest):
            return _scores(plan, second)

    return Quantity(price, delta, attack, is_broken=is_broken)


def _scores(plan: Terms, second: bool) -> Scores:
    columns = [np.full(1, at, np.uint8) for at in (SECOND if second else FIRST, FIRST) for _ in range(COLUMNS)]
    run = Driver(plan, [columns[:COLUMNS], columns[COLUMNS:]], entropy=True).run_to("levels")
    layout = layout_of(plan, plan.steps[1], plan.single_cover.views, 2)
    run.finish_step()
    tree = plan.wavelets[0].tree
    laws = {rate: _law(plan, rate) for rate in set(layout.rates)}
    rates = iter(layout.rates)
    one, other = tree.coefficients(np.eye(MANY, dtype=np.int64)[[FIRST, SECOND]])
    found = []
    for released in run.state.knowledge.released:
        # Without the row of the other party, which the attacker knows.
        seen = tree.coefficients(np.asarray(released.table.counts)).astype(np.int64) - one
        own = [laws[next(rates)] for _ in tree.levels]
        nodes = zip(tree.nodes, seen, one, other, strict=True)
        found.append(sum(float(own[level].loss(x - b, int(a - b))) for (level, _), x, a, b in nodes))
    return np.array(found)


def _law(plan: Terms, rate: Fraction) -> Noise:
    return shares(plan.plan.privacy, "distributed", rate, PARTIES, PARTIES)
