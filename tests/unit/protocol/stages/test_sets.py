"""What a table is for: sets of three attributes, and targets, in plans, private choices and models."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.errors import FailedCheck, PlanError
from protocol.forecast.error import predicted
from protocol.messages.tasks import Place, Placed
from protocol.picks.by_model import REFERENCE_ROWS, Judge
from protocol.plan.rationale import reasons
from protocol.plan.targets import targets_of
from protocol.run.synthesis import synthetic_codes
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from protocol.tables.schema import Schema
from tests.support.small_runs import Driver, plan_of, terms_of

NAMES = ("age", "sex", "income", "a+b")
BITS = Schema.parse({"attributes": [{"name": name, "kind": "categorical", "values": ["no", "yes"]} for name in NAMES]})
ROWS = (6000, 6000)
QUARTERS = (Fraction(1, 2),) * 4  # of epsilon 2


def parity(seed):
    """The third column is the parity of the first two: no pair shows anything of it."""
    random = np.random.default_rng(seed)
    found = []
    for rows in ROWS:
        age, sex, other = random.integers(0, 2, (3, rows))
        found.append([column.astype(np.uint8) for column in (age, sex, age ^ sex, other)])
    return found


def misplaced(ways):
    """The share of the synthetic rows whose third column is not the parity of the first two."""
    terms = terms_of(BITS, ROWS, 4, method="guided", ways=ways, noise="local", views="single", further=(2, 2))
    run = Driver(terms, parity(3), clear=True)
    run.finish()
    batches = synthetic_codes(terms, run.state.knowledge, sum(ROWS), Stream.keyed(b"rows"))
    age, sex, income, _ = [np.concatenate(columns) for columns in zip(*batches, strict=True)]
    return float(((age ^ sex) != income).mean())


def test_what_shows_in_three_attributes_alone_is_found_by_sets_of_three_and_lost_by_pairs():
    assert misplaced(3) < 0.05
    assert misplaced(2) == pytest.approx(0.5, abs=0.05)


def test_targets_are_attributes_and_sets_of_them_whatever_their_names_hold():
    assert targets_of("", NAMES) == ()
    assert targets_of("income, age + sex", NAMES) == (frozenset({2}), frozenset({0, 1}))
    assert targets_of("a+b", NAMES) == (frozenset({3}),)
    terms = terms_of(BITS, ROWS, 1, method="guided", target="income,age+sex", noise="local")
    assert [pair for pair in combinations(range(4), 2) if not terms.matters(pair)] == [(0, 3), (1, 3)]
    assert terms.matters((0, 1, 3))
    assert "Private choices count sets of columns for income,age+sex in full, and others half." in reasons(terms)


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"method": "guided", "target": "wage"}, "target 'wage' is no attribute of the schema"),
        ({"method": "guided", "target": "age,\x1b\n sex"}, "holds characters that cannot be shown"),
        ({"method": "guided", "target": "age,"}, "target '' is no attribute of the schema"),
        ({"method": "guided", "target": "age+sex+income+a+b"}, "target 'a' is no attribute"),
        ({"method": "dp-ccbn", "target": "age"}, "a target is for private choices by score M"),
        ({"method": "dp-ccbn", "ways": 3}, "sets of three are picked by method guided"),
        ({"method": "guided", "ways": 3, "views": "pairs"}, "sets of three are picked by method guided"),
        ({"method": "guided", "ways": 4}, "ways of 4 cannot be planned"),
    ],
)
def test_a_use_that_nothing_follows_from_is_refused(wishes, reason):
    with pytest.raises(PlanError, match=reason):
        terms_of(BITS, ROWS, 1, noise="local", **wishes)


def test_more_sets_of_three_than_can_be_looked_at_need_a_target():
    wide = [{"name": f"c{place}", "kind": "categorical", "values": ["no", "yes"]} for place in range(60)]
    schema = Schema.parse({"attributes": wide})
    with pytest.raises(PlanError, match="34,220 sets of three would have to be looked at, at most 25,000 can be"):
        terms_of(schema, ROWS, 1, method="guided", ways=3, noise="local")
    assert terms_of(schema, ROWS, 1, method="guided", ways=3, target="c7", noise="local").plan.ways == 3


def test_plans_without_a_use_keep_their_text_and_plans_for_three_are_not_predicted():
    plain = plan_of(BITS, ROWS, 1, method="guided").model_dump_json()
    assert "ways" not in plain
    assert "target" not in plain
    assert predicted(terms_of(BITS, ROWS, 1, method="guided", ways=3, noise="local")).error is None


def test_a_set_for_the_target_is_picked_before_a_somewhat_worse_answered_one():
    random = np.random.default_rng(5)
    first, second = random.integers(0, 2, (2, 4000))
    agrees = [np.where(random.random(4000) < share, one, 1 - one) for one, share in ((first, 0.95), (second, 0.85))]
    domain = Domain.of_sizes((2,) * 4)
    rows = Rows(domain, [column.astype(np.uint8) for column in (first, agrees[0], second, agrees[1])])
    even = np.arange(REFERENCE_ROWS)
    reference = Rows(domain, [(even >> bit & 1).astype(np.uint8) for bit in range(4)])
    pairs = list(combinations(range(4), 2))
    for matters, best in ((lambda _pair: True, (0, 1)), (lambda pair: 3 in pair, (2, 3))):
        judge = Judge(rows, reference, 1.0, matters)
        assert judge.pick(pairs, Fraction(10), "permute-and-flip", Stream.keyed(b"pick")) == best


@pytest.mark.parametrize(("ways", "picked"), [(2, (0, (1, 2))), (3, (0, (1, 2, 3))), (3, (0, (0, 1))), (3, (0, (9,)))])
def test_a_party_picks_no_larger_sets_than_the_plan_allows(ways, picked):
    terms = terms_of(
        BITS, ROWS, 2, method="guided", ways=ways, noise="local", views="single", split=QUARTERS, further=(1, 1)
    )
    run = Driver(terms, parity(3), clear=True).run_to("further/1")
    assert isinstance(run.tasks()[0], Place)
    with pytest.raises(FailedCheck, match=f"which is no set of at most {ways} variables"):
        run.receive(0, Placed(plan=terms.plan_hash, step="further/1", families=(picked,)))


def test_a_pick_of_nothing_is_said_and_nothing_is_counted_for_it():
    terms = terms_of(BITS, ROWS, 2, method="guided", noise="local", views="single", split=QUARTERS, further=(2, 1))
    run = Driver(terms, parity(3), clear=True).run_to("further/1")
    run.receive(0, Placed(plan=terms.plan_hash, step="further/1", families=((0, ()), (0, ()))))
    assert run.state.knowledge.further == ()
