"""Why a plan is as it is: the tuning's own words where the plan is the tuned one, and other words where it is not."""

from fractions import Fraction
from typing import Any

import pytest

from protocol.plan.rationale import reasons
from protocol.plan.terms import Terms
from protocol.plan.tuning import tuned
from protocol.privacy.mechanisms import DEFINITIONS
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, terms_of

ROWS = (3000, 2000, 4000)


def guided(epsilon: str = "1", schema: Any = MIXED, **wishes: Any) -> Terms:
    return terms_of(schema, ROWS, epsilon, method="guided", **wishes)


@pytest.mark.parametrize("wishes", [{}, {"insiders": 0}, {"privacy": "zcdp"}, {"noise": "selected"}])
@pytest.mark.parametrize(("schema", "epsilon"), [(BITS, "1"), (MIXED, "0.1"), (MIXED, "1"), (MIXED, "20")])
def test_a_tuned_plan_gives_the_reason_that_it_was_tuned_for(schema, epsilon, wishes):
    terms = guided(epsilon, schema, **wishes)
    plan, sizes = terms.plan, terms.domain.sizes[: terms.domain.count]
    found = tuned("guided", sizes, ROWS, sum(plan.split, Fraction(0)), DEFINITIONS[plan.privacy], plan.insiders)
    why = reasons(terms)[0]
    assert why.endswith(f". {found.why[0].upper()}{found.why[1:]}.")
    assert ("in views" in why) == (plan.views == "pairs")
    assert (f"up to {sum(plan.further)} further pairs" in why) == bool(plan.guided_rounds)


def test_the_budget_is_divided_in_words_that_add_up():
    words = reasons(guided("0.005"))[1]
    shares = [float(part.split(" %")[0].rpartition(" ")[2]) for part in words.split(",")]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert "every column alone" in words


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"insiders": 1}, "keeps 1.5 shares of noise"),
        ({"insiders": 0}, "keeps one full share of noise"),
        ({"insiders": 2, "noise": "selected"}, "keeps 3 full shares of noise"),
        ({"noise": "local"}, "keeps 3 full shares of noise, one from every party"),
        ({"privacy": "zcdp"}, "it is Gaussian, and needs a delta"),
        ({"insiders": 0}, "nobody is protected from a party"),
    ],
)
def test_the_noise_that_stays_is_told_with_whom_it_protects_from(wishes, words):
    assert words in reasons(guided(**wishes))[2]


def test_what_was_asked_for_is_not_said_to_be_tuned():
    wished = tuple(Fraction(share, 20) for share in (5, 5, 5, 5))
    assert "as requested" in reasons(guided(split=wished, further=(1, 0, 0)))[0]
    assert "as requested" in reasons(terms_of(MIXED, ROWS))[0]
    assert "the paper's" in reasons(terms_of(BITS, ROWS, preset="paper"))[0]
    assert "curator takes" in reasons(terms_of(MIXED, ROWS, method="dp-ccbn"))[0]
    assert "its own rows alone" in reasons(terms_of(MIXED, ROWS, method="independent"))[0]


@pytest.mark.parametrize(("schema", "epsilon"), [(BITS, "20"), (MIXED, "1")])
def test_the_five_phases_are_told_with_their_parts(schema, epsilon):
    terms = terms_of(schema, ROWS, epsilon, preset="sound")
    phases, division, _ = reasons(terms)
    assert f"in turn pick up to {sum(terms.plan.further)} pairs in the search frontier" in phases
    assert ("views of halves" in phases) == (terms.plan.views == "halves")
    for phase in ("correlations", "the first network", "the updates", "the last tables"):
        assert f"% for {phase}" in division


def test_very_many_columns_are_told_what_to_expect():
    columns = [{"name": f"a{n}", "kind": "integer", "min": 0, "max": 1} for n in range(1000)]
    bits, few = Schema.parse({"attributes": columns}), Schema.parse({"attributes": columns[:200]})
    (words,) = [one for one in reasons(guided(schema=bits)) if "very many" in one]
    assert words.startswith("1,000 columns are very many")
    assert "at most 999 of their 499,500 pairs are counted" in words
    assert not any("very many" in one for one in reasons(guided(schema=few)))
    for wishes in ({"method": "independent"}, {"preset": "paper"}):
        assert any("very many" in one for one in reasons(terms_of(bits, ROWS, **wishes)))


@pytest.mark.parametrize("method", ["guided", "independent"])
def test_the_price_of_several_rows_per_person_is_told(method):
    several = reasons(terms_of(MIXED, method=method, rows_per_person=3, parties_per_person=2))
    assert several[-1] == (
        "A person may have 3 rows at each of 2 parties, so the noise has to hide 6 rows of a person instead of 1."
    )
    assert not any("A person may have" in reason for reason in reasons(terms_of(MIXED, method=method)))
