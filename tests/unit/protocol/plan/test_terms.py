from fractions import Fraction

from protocol.network.limits import Limits
from protocol.privacy.usefulness import useful_degree
from protocol.stages.registry import stage_of
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, terms_of

TENTHS = (Fraction(1, 10), Fraction(2, 10), Fraction(3, 10), Fraction(4, 10))


def noise_rates(terms, stage, cells):
    own = step(terms, stage)
    return stage_of(terms, own).noise_rates(terms, own, cells)


def step(terms, name):
    return next(step for step in terms.steps if step.name == name)


def test_everybody_works_out_the_same_terms():
    one, other = terms_of(), terms_of()
    assert one.plan_hash == other.plan_hash
    assert one.steps == other.steps
    assert one.cover.views == other.cover.views
    assert one.limits == other.limits


def test_limits_of_bits_are_degrees():
    terms = terms_of(BITS, (300, 200, 100), split=TENTHS)
    degree = useful_degree(600, 5, Fraction(4, 10), Fraction(6))
    # 600 * 0.4 = 240 >= 6 (5 - k) 2^(k+2): k = 1: 192 yes; 2: 288 no; 3: 384; 4: 384.
    assert degree == 1
    assert terms.limits == Limits(degree=1)
    # 600 * 0.3 = 180 >= 2 (5 - k) 2^(k+2): k = 3: 128; 4: 128 yes.
    assert terms.frontier_limits == Limits(degree=4)


def test_limits_of_other_domains_are_cells():
    terms = terms_of(MIXED, (300, 200, 100), split=TENTHS)
    # 600 * 0.4 / (2 * 5 * 6) = 4; 600 * 0.3 / (2 * 5 * 2) = 9
    assert terms.limits == Limits(cells=4)
    assert terms.frontier_limits == Limits(cells=9)


def test_a_frontier_is_never_narrower_than_the_network():
    little = (Fraction(1, 10), Fraction(1, 10), Fraction(1, 1000), Fraction(7, 10))
    cells = terms_of(MIXED, (3000, 2000, 1000), split=little)
    assert cells.frontier_limits.cells == cells.limits.cells == 70
    degrees = terms_of(BITS, (3000, 2000, 1000), split=little)
    assert degrees.frontier_limits.degree == degrees.limits.degree


def test_a_wished_degree_leaves_the_frontier_free():
    terms = terms_of(BITS, (3000, 2000, 1000), degree=1)
    assert terms.limits == Limits(degree=1)
    assert terms.frontier_limits.degree > 1
    mixed = terms_of(MIXED, (3000, 2000, 1000), degree=1)
    assert mixed.limits.degree == 1
    assert mixed.frontier_limits.degree is None


def test_a_party_alone_is_limited_by_its_own_rows():
    terms = terms_of(MIXED, (30000, 20, 10), method="independent", split=(Fraction(3, 10), Fraction(7, 10)))
    # n 0.7 / (2 * 5 * 4)
    assert [terms.local_limits(party).cells for party in range(3)] == [525, 1, 1]


def test_tables_of_a_pass_share_its_budget_equally_and_a_row_moves_two_counts():
    terms = terms_of(split=TENTHS)
    rates = noise_rates(terms, "parameters", [(0,), (1,), (2,), (3,)])
    assert rates == (Fraction(4, 10) / 4 / 2,) * 4


def test_views_share_their_budget_by_weight_and_exactly():
    wide = Schema.parse(
        {
            "attributes": [
                {"name": f"v{i}", "kind": "integer", "min": 1, "max": 2 + 20 * (i > 6), "bins": 2 + 20 * (i > 6)}
                for i in range(9)
            ]
        }
    )
    terms = terms_of(wide, split=TENTHS)
    assert len(set(terms.cover.weights)) > 1
    rates = noise_rates(terms, "correlations", terms.cover.views)
    assert sum(rates) == Fraction(1, 10) / 2
    weight = terms.cover.weights[0] / Fraction(sum(terms.cover.weights))
    assert rates[0] == weight * Fraction(1, 10) / 2


def test_the_price_is_the_sum_of_the_charges():
    terms = terms_of(MIXED, update="replace", insiders=0, epsilon="0.8")
    for party in range(3):
        assert terms.price(party) == sum(one.charge(party) for one in terms.steps)


def test_bits_and_generalised_variants_are_variables():
    assert terms_of(MIXED, encoding="binary").domain.count == 9
    hierarchical = terms_of(MIXED, encoding="hierarchical")
    assert hierarchical.domain.count == 5 < len(hierarchical.domain.variables)
    assert len(hierarchical.blocks) == 5
    assert {v for view in hierarchical.cover.views for v in view} == set(range(5))
