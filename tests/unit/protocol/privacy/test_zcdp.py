"""Concentrated privacy in exact numbers: conversions against known values, charges by hand, and what plans refuse."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from protocol.errors import PlanError, PriceError
from protocol.forecast.costs import forecast
from protocol.privacy import zcdp
from protocol.privacy.mechanisms import PURE, ZCDP
from protocol.privacy.zcdp import cost_of_sum, epsilon_of, largest_rho, root_below, share_variance
from protocol.run.agreement import agree
from protocol.stages.methods import steps
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, SMALL_BITS, plan_of, terms_of

DELTA = Fraction(1, 10**9)


def zcdp_plan(schema=BITS, rows=(30, 20, 10), epsilon="1", **wishes):
    return plan_of(schema, rows, epsilon, **({"privacy": "zcdp", "noise": "distributed"} | wishes))


def zcdp_terms(schema=BITS, rows=(30, 20, 10), epsilon="1", **wishes):
    return terms_of(schema, rows, epsilon, **({"privacy": "zcdp", "noise": "distributed"} | wishes))


# Conversion


@pytest.mark.parametrize("rho", ["0.000001", "0.0001", "0.01", "0.3", "1", "10"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-15"])
def test_the_bound_is_the_best_order_of_its_formula_and_never_below_it(rho, delta):
    """inf over alpha > 1 of alpha rho + log(1 - 1/alpha) + log(1 / (delta alpha)) / (alpha - 1), on a fine grid."""
    alpha = 1 + np.exp(np.linspace(-4, 26, 400_001))
    offsets = np.log1p(-1 / alpha) + (-math.log(float(delta)) - np.log(alpha)) / (alpha - 1)
    best = max(0.0, float((alpha * float(rho) + offsets).min()))
    assert best * (1 - 1e-9) <= epsilon_of(Fraction(rho), Fraction(delta)) <= best * (1 + 1e-4)


def test_the_bound_is_below_the_simple_one_and_above_the_gaussians_own():
    # Bun and Steinke: rho + 2 sqrt(rho log(1/delta)). The Gaussian with mu = sqrt(2 rho) has, by Balle and Wang,
    # delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu): no valid conversion can promise a smaller epsilon.
    for rho in (0.0005, 0.01, 0.5):
        epsilon = float(epsilon_of(Fraction(str(rho)), DELTA))
        assert epsilon < rho + 2 * math.sqrt(rho * math.log(1e9))
        mu = math.sqrt(2 * rho)
        true = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert 0 < true < 1e-9


def test_offsets_are_rounded_up():
    for place in range(-192, 1280, 97):
        order = zcdp.order_at(place)
        alpha = order / 2**40
        assert alpha - 1 == pytest.approx(2 ** (place / 32), rel=1e-8)
        offset = zcdp.offset_of(order, DELTA)
        exact = math.log1p(-1 / alpha) + (math.log(1e9) - math.log(alpha)) / (alpha - 1)
        assert offset / 2**64 == pytest.approx(exact, rel=1e-6, abs=1e-12)


def test_no_privacy_is_spent_below_nothing():
    assert epsilon_of(Fraction(1, 10**40), Fraction(1, 2)) == 0


@pytest.mark.parametrize("epsilon", ["0.01", "0.2", "0.8", "1.6", "10"])
def test_the_largest_rho_is_worth_epsilon_exactly(epsilon):
    rho = largest_rho(Fraction(epsilon), DELTA)
    assert epsilon_of(rho, DELTA) == Fraction(epsilon)
    assert epsilon_of(rho * Fraction(10**9 + 1, 10**9), DELTA) > Fraction(epsilon)


def test_rho_of_known_budgets():
    # A value to recognise: epsilon 0.8 at delta 1e-9 is rho = 0.00976 (0.00758 by the simple formula).
    assert float(largest_rho(Fraction("0.8"), DELTA)) == pytest.approx(0.0097601, rel=1e-4)


def test_roots_from_below():
    assert root_below(Fraction(4)) == 2
    root = root_below(Fraction(2))
    assert root**2 < 2 < (root + Fraction(1, 2**63)) ** 2


# Noise and choices


def test_one_table_under_variance_one_over_rho():
    # squared L2 sensitivity 2, variance s: 2 / (2 s)
    rate = ZCDP.rate(Fraction(1, 500))
    assert ZCDP.variance(rate) == 500.0
    assert ZCDP.mean_size(500.0) == pytest.approx(math.sqrt(1000 / math.pi))
    assert PURE.mean_size(PURE.variance(Fraction(1, 100))) == pytest.approx(100, rel=1e-3)


def test_choices_cost_an_eighth_or_half_of_the_square():
    assert ZCDP.choice_epsilon(Fraction(1, 8), "exponential") == 1
    assert ZCDP.choice_epsilon(Fraction(1, 8), "permute-and-flip") == Fraction(1, 2)
    assert PURE.choice_epsilon(Fraction(1, 8), "exponential") == Fraction(1, 8)


def test_useful_cells_by_hand():
    # 3 tables share rho = 0.02: variance 150 each, mean size sqrt(300/pi) = 9.77; 1000 rows, theta 4: 1000/39.09
    assert ZCDP.useful_cells(1000, 3, Fraction(1, 50), Fraction(4)) == 25
    assert PURE.useful_cells(1000, 5, Fraction(1, 2), Fraction(6)) == 8


def test_a_single_share_is_the_whole():
    assert share_variance(Fraction(1, 100), 1) == 100


def test_shares_add_up_to_a_little_more_than_the_whole():
    variance = share_variance(Fraction(1, 1000), 4)
    assert variance == 250 * (1 + Fraction(1, 2**20))
    assert cost_of_sum(variance, 4) <= Fraction(1, 1000)


def test_narrow_shares_are_made_wide_enough_for_their_sum_to_be_nearly_gaussian():
    assert share_variance(Fraction(5), 20) == 8
    assert cost_of_sum(Fraction(8), 20) <= 5


def test_shares_are_widened_until_the_certificate_holds():
    rho, shares = Fraction(1, 2**200), 2**200
    assert share_variance(rho, shares) == 32
    assert cost_of_sum(Fraction(16), shares) > rho >= cost_of_sum(Fraction(32), shares)


@pytest.mark.parametrize(("variance", "shares"), [(1, 2), (1, 5), (2, 3), (3, 10)])
def test_the_certificate_bounds_the_sums_true_divergence(variance, shares):
    """Renyi divergences of the convolution itself, cell by cell: one count up, another down."""
    reach = 40 * math.ceil(math.sqrt(variance))
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    law = one = one / one.sum()
    for _ in range(shares - 1):
        law = np.convolve(law, one)
    middle = law.size // 2
    near = math.ceil(8 * math.sqrt(variance * shares))  # where floats are right to many digits
    here, there = np.log(law[middle - near + 1 : middle + near + 1]), np.log(law[middle - near : middle + near])
    cost = float(cost_of_sum(Fraction(variance), shares))
    for alpha in (1.01, 1.5, 2, 3):
        divergence = logsumexp(alpha * here + (1 - alpha) * there) / (alpha - 1)
        assert 2 * divergence <= alpha * cost


def test_what_stays_in_a_total():
    plan = zcdp_plan(insiders=1)
    rate = Fraction(1, 1000)
    assert plan.noise_mode.retained_variance(rate) == pytest.approx(3 * 500, rel=1e-5)
    assert zcdp_plan(noise="local").noise_mode.retained_variance(rate) == 3000
    assert zcdp_plan(noise="selected", insiders=1).noise_mode.retained_variance(rate) == 2000


# Charges


def charges(plan, party, variables=5):
    return [(step.charge(party), step.delta(party)) for step in steps(plan, variables)]


def test_a_step_costs_what_it_adds_to_the_epsilon_of_all_before():
    split = tuple(Fraction(part, 1000) for part in (1, 2, 3, 4))
    plan = zcdp_plan(epsilon=3, picks=(2, 2, 1)).model_copy(update={"split": split})
    found = [charge for charge, _ in charges(plan, 1) if charge]
    worth = [epsilon_of(Fraction(rho, 1000), DELTA) for rho in (1, 3, 6, 10)]
    for spent, exact in zip(np.cumsum(found), worth, strict=True):
        assert 0 <= spent - exact < Fraction(1, 10**9)
    assert found[0] > found[1] * 2 / 3  # the same rho is dearer early: epsilon(rho) is concave


def test_delta_is_charged_once_with_the_first_charged_step():
    plan = zcdp_plan(picks=(2, 2, 1))
    assert [delta for _, delta in charges(plan, 0) if delta] == [DELTA]
    first = next(step for step in steps(plan, 5) if step.delta(0))
    assert first.name == "correlations"
    terms = zcdp_terms(picks=(2, 2, 1))
    assert [terms.delta(party) for party in range(3)] == [DELTA] * 3


@pytest.mark.parametrize("epsilon", ["0.2", "0.8", "1/3", "0.0123456789012345"])
@pytest.mark.parametrize("update", ["accumulate", "joint", "replace"])
def test_whole_runs_cost_at_most_epsilon_and_nearly_that(epsilon, update):
    insiders = 0 if update == "replace" else 1
    terms = zcdp_terms(epsilon=Fraction(epsilon), update=update, insiders=insiders, picks=(2, 2, 1))
    prices = [terms.price(party) for party in range(3)]
    assert max(prices) <= Fraction(epsilon)
    assert max(prices) >= Fraction(epsilon) - Fraction(2, 10**9)


@pytest.mark.parametrize("method", ["dp-ccbn", "independent"])
def test_the_other_methods_cost_epsilon_too(method):
    terms = zcdp_terms(MIXED, (300, 200, 100), "0.8", method=method)
    assert {terms.price(party) for party in range(3)} == {Fraction("0.8")}
    assert {terms.delta(party) for party in range(3)} == {DELTA}


def test_pure_runs_cost_no_delta():
    assert terms_of(BITS).delta(0) == 0
    assert {step.delta(0) for step in terms_of(BITS).steps} == {0}


# Plans


def test_defaults_of_zcdp():
    plan = zcdp_plan(noise=None)
    assert (plan.privacy, plan.delta, plan.choice, plan.cover_budgets) == ("zcdp", DELTA, "exponential", "square-root")
    assert epsilon_of(sum(plan.split), plan.delta) <= 1
    pure = plan_of(BITS)
    assert (pure.privacy, pure.delta) == ("pure", 0)


@pytest.mark.parametrize(("epsilon", "rounds", "further"), [("0.2", 1, 0), ("0.8", 1, 2), ("2", 2, 3), ("8", 2, 6)])
def test_more_budget_pays_for_more_picks_in_more_rounds(epsilon, rounds, further):
    """Six attributes of 20 values: noise misplaces over 10, 6 to 10, 3 to 6 and less than 3 % of a pair's rows."""
    wide = [{"name": name, "kind": "integer", "min": 0, "max": 19} for name in "abcdef"]
    schema = Schema.parse({"attributes": wide})
    plan = zcdp_plan(schema, (9000, 8000, 7000), epsilon, method="guided")
    assert (plan.rounds, sum(plan.further)) == (rounds, further)
    assert agree(plan, schema, SMALL_BITS).price(0) <= Fraction(epsilon)


def test_a_wished_split_gives_the_proportions_of_rho():
    plan = zcdp_plan(split=(Fraction(1), Fraction(2), Fraction(3), Fraction(4)))
    one, *_ = plan.split
    assert plan.split == (one, 2 * one, 3 * one, 4 * one)
    assert sum(plan.split) == sum(zcdp_plan().split)
    replaced = zcdp_plan(update="replace", insiders=0, split=(Fraction(1),) * 4)
    assert sum(replaced.split) + 2 * replaced.split[2] == sum(zcdp_plan().split)


def test_a_split_of_nothing_is_refused_as_ever():
    with pytest.raises(PlanError, match="'parameters' is 0"):
        zcdp_terms(split=(Fraction(0),) * 4)


@pytest.mark.parametrize("delta", [Fraction(1, 60), Fraction(1, 2)])
def test_a_delta_of_a_whole_row_is_refused(delta):
    with pytest.raises(PlanError, match="below 1/60"):
        zcdp_terms(delta=delta)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(-1), Fraction(2)])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(PlanError, match="between 0 and 1"):
        zcdp_plan(delta=delta)


def test_a_delta_without_zcdp_is_refused():
    with pytest.raises(PlanError, match="choose privacy=zcdp"):
        terms_of(BITS, delta=DELTA)


def test_an_epsilon_that_buys_nothing_is_refused():
    with pytest.raises(PlanError, match="leaves no rho"):
        zcdp_plan(epsilon=Fraction(1, 10**12), delta=Fraction(1, 10**20))


def test_a_plan_from_elsewhere_without_a_delta_is_refused_before_it_is_priced():
    plan = zcdp_plan().model_copy(update={"delta": Fraction(0)})
    with pytest.raises(PlanError, match="must be positive"):
        agree(plan, BITS, SMALL_BITS)


def test_a_plan_that_spends_more_rho_than_epsilon_buys_is_refused():
    plan = zcdp_plan()
    dearer = plan.model_copy(update={"split": (*plan.split[:3], plan.split[3] * Fraction(101, 100))})
    with pytest.raises(PriceError, match="more than epsilon = 1"):
        agree(dearer, BITS, SMALL_BITS)


def test_noise_beyond_the_sampler_is_refused():
    with pytest.raises(PlanError, match="too wide"):
        zcdp_terms(epsilon=Fraction(1, 10**6), split=(Fraction(1, 10**9), Fraction(1), Fraction(1), Fraction(1)))


def test_the_forecast_knows_that_gaussian_noise_is_narrower():
    rows = (30_000, 20_000, 10_000)
    pure = forecast(terms_of(MIXED, rows, "0.2", noise="local", split=None))
    concentrated = forecast(zcdp_terms(MIXED, rows, "0.2", noise="local"))
    assert concentrated.prices == (Fraction("0.2"),) * 3
    by_name = {step.name: step.error for step in pure.steps}
    better = {step.name: step.error for step in concentrated.steps}
    assert better["correlations"] < by_name["correlations"]
