"""What noise stays in a total, whatever the transport. False-alarm rate 1e-6 per test (see goodness.py)."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import signal, stats

from crypto.paillier_secret import SecretKey
from protocol.plan.terms import Terms
from protocol.privacy.zcdp import share_variance
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.statistical.goodness import FALSE_ALARM, Law, binomial_p_value, p_values, rejected
from tests.statistical.test_gaussian_statistics import gaussian_law
from tests.statistical.test_noise_statistics import laplace_law, share_law
from tests.support.small_runs import Driver, pooled, random_codes, terms_of

# Two attributes make one view of 8192 cells: as many independent draws of the noise.
WIDE = Schema.parse(
    {
        "attributes": [
            {"name": "one", "kind": "integer", "min": 0, "max": 127},
            {"name": "other", "kind": "integer", "min": 0, "max": 63},
        ]
    }
)
ROWS = (500, 300, 200)
ALPHA = Fraction(1, 4)
# split: correlations at alpha = 1/4, nothing between, and a little for the parameters
MODES = [("selected", 0), ("selected", 1), ("selected", 2), ("distributed", 0), ("distributed", 1), ("local", 1)]


def noise_of(noise: str, insiders: int, secret: SecretKey | None) -> np.ndarray:
    """Noisy total minus true total, cell by cell; without a secret the cryptography is left out."""
    split = (2 * ALPHA, 0, 0, Fraction(1, 2))
    return noise_in(terms_of(WIDE, ROWS, noise=noise, insiders=insiders, split=split), secret)


def noise_in(terms: Terms, secret: SecretKey | None) -> np.ndarray:
    codes = random_codes(WIDE, ROWS)
    run = Driver(terms, codes, secret, clear=secret is None, entropy=True).run_to("parameters")
    (released,) = run.state.knowledge.released
    assert released.table.variance == terms.plan.noise_mode.retained_variance(
        terms.plan.definition.rate(terms.plan.split[0])
    )
    truth = Rows(terms.domain, terms.encoding.encode(pooled(WIDE, codes)))
    return (released.table.counts - truth.table(released.table.variables)).ravel()


def law_of(noise: str, insiders: int) -> Law:
    if noise == "distributed":
        return sum_of(len(ROWS), share_law(ALPHA, len(ROWS) - insiders))
    return sum_of(insiders + 1 if noise == "selected" else len(ROWS), laplace_law(ALPHA))


def sum_of(count: int, law: Law) -> Law:
    """The law of the sum of independent draws."""
    low, pmf = law.low, law.pmf
    for _ in range(count - 1):
        low, pmf = low + law.low, np.maximum(signal.fftconvolve(pmf, law.pmf), 0.0)
    return Law(low, pmf)


@pytest.mark.parametrize("transport", ["real", "clear"])
@pytest.mark.parametrize(("noise", "insiders"), MODES)
def test_a_total_keeps_the_noise_that_the_mode_promises(noise, insiders, transport, small_secret):
    draws = noise_of(noise, insiders, small_secret if transport == "real" else None)
    assert rejected(p_values(draws, law_of(noise, insiders))) == []


@pytest.mark.parametrize(("noise", "insiders"), MODES)
def test_the_variance_that_is_published_is_the_laws(noise, insiders):
    plan = terms_of(WIDE, ROWS, noise=noise, insiders=insiders, split=(2 * ALPHA, 0, 0, Fraction(1, 2))).plan
    law = law_of(noise, insiders)
    assert plan.noise_mode.retained_variance(ALPHA) == pytest.approx((law.pmf * law.values**2).sum(), rel=1e-6)


@pytest.mark.parametrize(("noise", "insiders"), [("selected", 1), ("distributed", 1)])
def test_real_and_clear_transports_keep_the_same_noise(noise, insiders, small_secret):
    real, clear = noise_of(noise, insiders, small_secret), noise_of(noise, insiders, None)
    # On integers Kolmogorov and Smirnov's test is conservative: it raises fewer false alarms than declared.
    assert stats.ks_2samp(real, clear, method="asymp").pvalue > FALSE_ALARM


@pytest.mark.parametrize(("noise", "insiders"), [("selected", 0), ("distributed", 1), ("local", 1)])
def test_another_modes_noise_would_be_noticed(noise, insiders):
    assert rejected(p_values(noise_of("selected", 1, None), law_of(noise, insiders))) != []


def test_one_insider_leaves_a_full_share_that_it_does_not_know(small_secret):
    """With s = 2 whoever subtracts its own noise still meets another's: never less than one share's variance."""
    one, two = law_of("selected", 0), noise_of("selected", 1, small_secret)
    spread = int(np.sqrt((one.pmf * one.values**2).sum()) * 3)
    beyond = one.pmf[np.abs(one.values) > spread].sum()
    hits = int((np.abs(two) > spread).sum())
    assert hits > beyond * two.size
    assert binomial_p_value(hits, two.size, beyond) < FALSE_ALARM


# privacy=zcdp


def zcdp_terms(noise: str, insiders: int, epsilon: int) -> Terms:
    split = (Fraction(1), Fraction(0), Fraction(0), Fraction(1))
    return terms_of(WIDE, ROWS, epsilon, privacy="zcdp", noise=noise, insiders=insiders, split=split)


def zcdp_law(terms: Terms) -> Law:
    plan, rho = terms.plan, terms.plan.split[0]
    if plan.noise == "distributed":
        return sum_of(plan.parties, gaussian_law(share_variance(rho, plan.parties - plan.insiders)))
    return sum_of(plan.noise_shares if plan.noise == "selected" else plan.parties, gaussian_law(1 / rho))


@pytest.mark.parametrize("epsilon", [1, 20])  # 20 takes shares that are made wider than the budget asks for
@pytest.mark.parametrize(("noise", "insiders"), MODES)
def test_a_total_keeps_the_gaussian_noise_that_the_mode_promises(noise, insiders, epsilon):
    terms = zcdp_terms(noise, insiders, epsilon)
    law = zcdp_law(terms)
    assert rejected(p_values(noise_in(terms, None), law)) == []
    published = terms.plan.noise_mode.retained_variance(terms.plan.split[0])
    assert published == pytest.approx((law.pmf * law.values**2).sum(), rel=1e-6)


@pytest.mark.parametrize(("noise", "insiders"), [("selected", 1), ("distributed", 1)])
def test_real_transport_keeps_the_same_gaussian_noise(noise, insiders, small_secret):
    terms = zcdp_terms(noise, insiders, 1)
    assert rejected(p_values(noise_in(terms, small_secret), zcdp_law(terms))) == []


# update=replace


def replaced_noise() -> list[np.ndarray]:
    """The noise in S_1, ..., S_4 over one family that stays the same; e3 buys alpha = 1/2 each time."""
    rows = (400, 300, 200, 100)
    split = (1, 0, 1, Fraction(1, 2))
    tiny = Fraction(1, 10**9)  # so that the noisy tables never forbid a family
    wishes = {"split": split, "insiders": 0, "noise": "local", "update": "replace", "theta": tiny}
    terms = terms_of(WIDE, rows, 6, frontier_theta=tiny, **wishes)
    codes = random_codes(WIDE, rows)
    run = Driver(terms, codes, entropy=True)
    noises = []
    for newest in range(4):
        run.run_to(f"update/{newest + 1}").finish_step()
        (statistic,) = run.state.knowledge.statistics.values()
        assert statistic.rows == sum(rows[: newest + 1])
        truth = Rows(terms.domain, terms.encoding.encode(pooled(WIDE, codes[: newest + 1])))
        noises.append((statistic.table.counts - truth.table(statistic.table.variables)).ravel())
    return noises


def test_replaced_statistics_hold_one_share_of_noise_each():
    for noise in replaced_noise():
        assert rejected(p_values(noise, laplace_law(Fraction(1, 2)))) == []


def test_theorem_5_is_false_because_the_first_rows_are_released_again_under_fresh_noise():
    """Show the papers' slip no. 5 (protocol/papers.md).

    Whoever knows the other parties' rows holds K independent noisy copies of the first party's counts. Their
    least exceeds the true count by x or more with probability P(noise >= x)^K. One row more or less moves a
    count by one, and if all of it cost e3 once, that could change no probability by more than exp(alpha),
    alpha = e3 / 2 for one count.
    """
    noises = replaced_noise()
    least = np.min(noises, axis=0)
    with_row, without_row = int((least >= 0).sum()), int((least >= 1).sum())
    allowed = float(np.exp(-1 / 2)) * with_row / least.size
    assert without_row < allowed * least.size
    assert binomial_p_value(without_row, least.size, allowed) < FALSE_ALARM
    # Averaging the copies is what the paper's accounting says nobody can do: a quarter of one share's variance.
    assert np.var(np.mean(noises, axis=0)) < np.var(noises[0]) / 3


def test_replaced_noises_are_independent():
    noises = replaced_noise()
    correlation = np.corrcoef(noises)[~np.eye(4, dtype=bool)]
    # Twelve normal scores, of which six differ; 6.0 is far beyond 1e-6 for all together.
    assert np.abs(correlation).max() * np.sqrt(noises[0].size) < 6.0
