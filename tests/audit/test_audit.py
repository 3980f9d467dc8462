"""The privacy audit in short: no release is worth more than its price, and every broken variant is found out.

False-alarm rate 1e-6 per test. A broken variant is missed at no higher rate: its trials are so many that the bound lies
at least five of its standard deviations above the price (measured over 12 to 40 audits of each). `make audit` repeats
this with up to a million trials for each quantity.
"""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from scipy import stats

from tests.audit import totals
from tests.audit.bounds import Tally, lower_limit, upper_limit
from tests.audit.catalogue import BROKEN, PERSON, RELEASED, Entry
from tests.audit.laws import gaussian, laplace, polya, spent
from tests.statistical.goodness import FALSE_ALARM


@pytest.mark.parametrize("entry", RELEASED, ids=lambda entry: entry.name)
def test_nothing_that_is_released_is_worth_more_than_its_price(entry: Entry) -> None:
    finding = entry.audited(is_long=False, doubt=FALSE_ALARM)
    assert finding.is_as_expected, finding


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry.name)
def test_every_broken_variant_is_found_out(entry: Entry) -> None:
    finding = entry.audited(is_long=False, doubt=FALSE_ALARM)
    assert finding.bound > float(Fraction(finding.price)), finding


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
@pytest.mark.parametrize("said", [totals.Person(1, 2), totals.Person(2, 2), totals.Person(3, 1)], ids=str)
def test_the_exact_law_charges_a_person_with_more_rows_than_the_plan_says_beyond_the_price(
    said: totals.Person, privacy: str
) -> None:
    understated = totals.total("distributed", privacy, True, PERSON, said)
    assert understated.exact is not None
    assert understated.exact > float(understated.price)


class TestBounds:
    def test_limits_are_those_of_the_binomial_law(self) -> None:
        hits, doubt = np.array([0, 3, 40, 100]), 1e-4
        low, high = lower_limit(hits, 100, doubt), upper_limit(hits, 100, doubt)
        assert low[0] == 0
        assert high[-1] == 1
        assert stats.binom.sf(hits[1:] - 1, 100, low[1:]) == pytest.approx(doubt)
        assert stats.binom.cdf(hits[:-1], 100, high[:-1]) == pytest.approx(doubt)

    def test_randomised_response_is_bounded_closely_and_never_beyond_the_truth(self) -> None:
        """The answer is true with a chance of 3/4, which is worth log 3, and the chance of being wrong is shared."""
        generator, tally = np.random.default_rng(), Tally(reach=1.5)
        answers = [np.where(generator.random(200_000) < chance, log(3), -log(3)) for chance in (3 / 4, 1 / 4)]
        tally.add(*answers)
        assert 1.03 < tally.bound(0.0, FALSE_ALARM) <= log(3)
        assert tally.bound(0.5, FALSE_ALARM) == pytest.approx(0.0, abs=0.03)  # 3/4 <= e^0 / 4 + 1/2

    def test_outcomes_that_only_one_table_has_are_bounded_by_the_number_of_trials(self) -> None:
        tally = Tally(reach=1.0)
        tally.add(np.full(1000, np.inf), np.full(1000, -np.inf))
        assert 3.5 < tally.bound(0.0, FALSE_ALARM) < log(1000)


class TestLaws:
    @pytest.mark.parametrize(
        "law", [laplace(Fraction(1, 2)), polya(Fraction(1, 2), Fraction(1))], ids=["whole", "parts"]
    )
    def test_a_full_share_is_worth_its_price(self, law: object) -> None:
        assert spent(*law.table_losses(), 0.0) == pytest.approx(1, rel=1e-12)  # type: ignore[attr-defined]

    def test_less_than_a_share_is_worth_more(self) -> None:
        assert spent(*polya(Fraction(1, 2), Fraction(1, 2)).table_losses(), 0.0) > 1.5

    @pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-9])
    def test_gaussian_noise_is_worth_what_balle_and_wang_found(self, delta: float) -> None:
        """Their formula is for continuous noise, which discrete noise of such a deviation equals closely."""
        shift = (2 / 400) ** 0.5
        found = spent(*gaussian(Fraction(400)).table_losses(), delta)
        tails = [stats.norm.cdf(sign * shift / 2 - found / shift) for sign in (1, -1)]
        assert tails[0] - np.exp(found) * tails[1] == pytest.approx(delta, rel=2e-3)
