"""Whatever the plan, what is charged covers what was spent; bounds are safe on every side."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.privacy.zcdp import cost_of_sum, epsilon_of, largest_rho, root_below, share_variance
from protocol.stages.methods import steps
from tests.support.effort import examples
from tests.support.small_runs import BITS, plan_of

rhos = st.fractions(Fraction(1, 10**12), Fraction(20), max_denominator=10**15).filter(bool)
deltas = st.sampled_from([Fraction(1, 10**3), Fraction(1, 10**9), Fraction(1, 10**12), Fraction(7, 10**17)])


@given(rhos, rhos, deltas)
@settings(deadline=None, max_examples=examples(100))
def test_epsilon_increases_and_is_concave(one, other, delta):
    low, high = sorted((one, other))
    middle = (low + high) / 2
    assert epsilon_of(low, delta) <= epsilon_of(middle, delta) <= epsilon_of(high, delta)
    if epsilon_of(low, delta):  # below it there is nothing that delta does not cover already
        assert 2 * epsilon_of(middle, delta) >= epsilon_of(low, delta) + epsilon_of(high, delta)


@given(st.fractions(Fraction(1, 100), Fraction(30), max_denominator=10**9), deltas)
@settings(deadline=None, max_examples=examples(60))
def test_the_largest_rho_is_worth_epsilon(epsilon, delta):
    assert epsilon_of(largest_rho(epsilon, delta), delta) == epsilon


@given(rhos, st.integers(1, 200))
@settings(deadline=None, max_examples=examples(200))
def test_shares_are_certified(rho, shares):
    variance = share_variance(rho, shares)
    assert cost_of_sum(variance, shares) <= rho
    assert shares * variance >= 1 / rho


@given(st.fractions(Fraction(1, 10**15), Fraction(100)))
@settings(max_examples=examples(200))
def test_roots_are_from_below(square):
    assert 0 <= root_below(square) ** 2 <= square


@st.composite
def zcdp_plans(draw):
    parties = draw(st.integers(2, 4))
    update = draw(st.sampled_from(["accumulate", "replace", "joint"]))
    shares = [draw(st.integers(0, 9)) for _ in range(3)]
    if not shares[0]:
        shares[2] = 0
    picks = draw(st.lists(st.integers(0, 5), min_size=parties, max_size=parties))
    return plan_of(
        BITS,
        [100] * parties,
        draw(st.sampled_from(["0.05", "0.8", "7/3", "12"])),
        privacy="zcdp",
        delta=draw(deltas),
        noise="distributed",
        update=update,
        rounds=draw(st.integers(1, 4)),
        picks=tuple(picks),
        split=tuple(map(Fraction, (*shares, 3))),
    )


@given(zcdp_plans())
@settings(deadline=None, max_examples=examples(60))
def test_charges_cover_what_has_been_spent_at_every_step(plan):
    """Also for a run that dies there; and the whole is never more than epsilon."""
    for party in range(plan.parties):
        rho = epsilon = delta = Fraction(0)
        for step in steps(plan, 5):
            assert step.charge(party) >= 0
            rho += step.spends.get(party, Fraction(0))
            epsilon += step.charge(party)
            delta += step.delta(party)
            assert delta == (plan.delta if rho else 0)
            assert epsilon >= (epsilon_of(rho, plan.delta) if rho else 0)
        assert epsilon <= plan.epsilon
