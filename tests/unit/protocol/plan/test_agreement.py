import re
from fractions import Fraction
from time import process_time

import pytest

from crypto.randomness import Stream
from protocol.errors import PlanError, PriceError
from protocol.plan.plan import Plan
from protocol.run.agreement import agree
from protocol.run.party import accept
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, SMALL_BITS, identity, plan_of, random_codes, terms_of

NOTHING, SOME = Fraction(0), Fraction(1, 4)


def refusal(plan: Plan, schema: Schema = BITS, kind: type[PlanError] = PlanError, **how) -> str:
    with pytest.raises(kind) as refused:
        agree(plan, schema, **({"smallest_key": SMALL_BITS} | how))
    text = str(refused.value)
    assert "\n" not in text
    return text


def changed(plan: Plan, **changes) -> Plan:
    return plan.model_copy(update=changes)


def test_good_plans_are_accepted_and_priced():
    terms = terms_of(epsilon="0.8")
    assert [terms.price(party) for party in range(3)] == [Fraction(4, 5)] * 3


@pytest.mark.parametrize("epsilon", [0, -1])
def test_epsilon_must_be_positive(epsilon):
    assert refusal(changed(plan_of(), epsilon=Fraction(epsilon))) == f"epsilon is {epsilon}: it must be positive"


def test_one_party_is_no_federation():
    assert refusal(plan_of(rows=(5,), insiders=0)) == "1 party is too few: a run needs at least 2 parties"


def test_names_are_unique():
    plan = plan_of()
    first, second, third = plan.members
    twice = (first, second, third.model_copy(update={"name": first.name}))
    assert (
        refusal(changed(plan, members=twice)) == "two parties have the same name: every party needs a name of its own"
    )


@pytest.mark.parametrize("field", ["signing_key", "exchange_key"])
def test_keys_are_unique(field):
    first, second, third = (plan := plan_of()).members
    for copied in (first.signing_key, first.exchange_key):
        twice = (first, second, third.model_copy(update={field: copied}))
        text = "a key is listed twice in the roster: every party needs a signing and an exchange key of its own"
        assert refusal(changed(plan, members=twice)) == text


@pytest.mark.parametrize("low_order", [bytes(32), b"\x01" + bytes(31)])
def test_exchange_keys_of_small_order_are_refused_before_anybody_pays(low_order):
    first, second, third = (plan := plan_of(noise="distributed")).members
    improper = (first, second, third.model_copy(update={"exchange_key": low_order}))
    refused = refusal(changed(plan, members=improper))
    assert refused.startswith("the exchange key of party-3 is improper: ")
    assert "small order" in refused


def test_a_party_joins_under_its_own_keys_only():
    terms = terms_of()
    rows = Rows(terms.domain, terms.encoding.encode(random_codes(BITS, (30, 20, 10))[0]))
    with pytest.raises(PlanError, match="the plan's roster does not hold the keys of party-1"):
        accept(terms, 0, identity(1), rows, Stream.keyed(b"test"))


def test_somebody_must_be_left_to_protect():
    assert refusal(plan_of(insiders=3)) == "3 insiders among 3 parties leave nobody to protect: at most 2"
    terms_of(insiders=2)


def test_a_split_has_one_budget_per_phase():
    phases = "correlations, initial network, frontier and updates, parameters"
    assert refusal(plan_of(split=(SOME,) * 3)) == f"the split has 3 budgets, but dp-subn needs 4 ({phases})"
    expected = "the split has 4 budgets, but dp-ccbn needs 2 (structure, parameters)"
    assert refusal(plan_of(method="dp-ccbn", split=(SOME,) * 4)) == expected


def test_no_budget_is_negative():
    split = (SOME, -SOME, SOME, SOME)
    assert refusal(plan_of(split=split)) == "the budget of 'initial network' is -1/4: it must not be negative"


def test_parameters_need_a_budget():
    text = refusal(plan_of(split=(SOME, SOME, SOME, NOTHING)))
    assert text == "the budget of 'parameters' is 0: without it there are no tables to sample from"


def test_independent_needs_a_budget_for_structure():
    text = refusal(plan_of(method="independent", split=(NOTHING, Fraction(1))))
    assert text == "the budget of 'structure' is 0: method independent picks its networks with it"
    terms_of(method="dp-ccbn", split=(NOTHING, Fraction(1)))


def test_keys_that_every_party_would_refuse_are_refused_before():
    assert refusal(plan_of(key_bits=8200)) == "a Paillier key of 8200 bits is too large: take 3072, or at most 8192"


@pytest.mark.parametrize("name", ["theta", "frontier_theta"])
@pytest.mark.parametrize("value", [0, -2])
def test_theta_is_positive(name, value):
    text = refusal(plan_of(**{name: Fraction(value)}))
    assert text == "theta must be positive: it says how many times more information than noise a table must carry"


def test_plan_and_schema_belong_together():
    text = refusal(plan_of(BITS), MIXED)
    assert re.fullmatch(
        r"the plan is for the schema [0-9a-f]{12}\.\.\., this one is [0-9a-f]{12}\.\.\.: use one schema", text
    )


def test_small_keys_are_for_tests():
    text = refusal(plan_of(key_bits=2040), smallest_key=2048)
    assert text == "a Paillier key of 2040 bits is too small: take 3072, or at least 2048"
    agree(plan_of(key_bits=2048), BITS)


def test_score_f_is_for_bits():
    text = refusal(plan_of(MIXED, score="F"), MIXED)
    assert text == "score F is defined for binary variables only: choose score R, or encoding binary or gray"
    terms_of(MIXED, score="F", encoding="gray")


@pytest.mark.parametrize("picks", [(5, 0), (5, 0, 0, 0), (2, 1, 1, 1)])
def test_every_party_has_a_number_of_picks_and_of_further_pairs(picks):
    """The steps are worked out from them, so that a number too many would be that of a party that is not there."""
    text = f"of {len(picks)} parties: give each of its 3 a number"
    assert refusal(plan_of(picks=picks)) == f"the plan has picks {text}"
    assert refusal(changed(plan_of(), further=picks)) == f"the plan has further pairs {text}"


@pytest.mark.parametrize("picks", [(2, 2, 2), (1, 1, 1)])
def test_the_parties_place_every_variable(picks):
    text = refusal(plan_of(picks=picks))
    assert text == f"the parties' picks {picks} do not add up to the 5 variables of 3 parties"


def test_updates_need_correlations():
    text = refusal(plan_of(split=(NOTHING, SOME, SOME, SOME)))
    assert text == "updates need correlations: give 'correlations' a budget, or 'frontier and updates' none"
    terms_of(split=(NOTHING, SOME, NOTHING, SOME))


def test_replace_is_for_parties_that_trust_each_other():
    text = refusal(plan_of(update="replace", insiders=1))
    assert text == (
        "update=replace protects nobody against other parties, because the party whose noise is kept can "
        "subtract it: choose update=accumulate, or insiders=0 if you trust every party"
    )
    terms_of(update="replace", insiders=1, split=(SOME, SOME, NOTHING, SOME))  # nothing is replaced


def test_nobody_pays_more_than_epsilon():
    split = (SOME, SOME, SOME, Fraction(1, 2))
    text = refusal(plan_of(split=split), kind=PriceError)
    assert text == (
        "this plan costs party-1 5/4, more than epsilon = 1: lower the budgets 1/4, 1/4, 1/4, 1/2, or raise epsilon"
    )


def test_replace_names_the_largest_budget_that_fits_and_that_one_is_accepted():
    wishes = {"update": "replace", "insiders": 0}
    text = refusal(plan_of(split=(SOME,) * 4, **wishes), kind=PriceError)
    assert text == (
        "this plan costs party-1 3/2, more than epsilon = 1: with update=replace the first party's rows are released "
        "3 times under fresh noise, which the paper's theorem 5 counts once; the largest budget for 'frontier and "
        "updates' that fits is 1/12, or choose update=accumulate, which releases every row once"
    )
    fitting = terms_of(split=(SOME, SOME, Fraction(1, 12), SOME), **wishes)
    assert fitting.price(0) == 1
    slightly_more = (SOME, SOME, Fraction(1, 12) + Fraction(1, 10**30), SOME)
    refusal(plan_of(split=slightly_more, **wishes), kind=PriceError)


def test_replace_that_cannot_fit_at_all_says_so():
    half = Fraction(1, 2)
    text = refusal(plan_of(split=(half, half, half, half), update="replace", insiders=0), kind=PriceError)
    assert "that fits is 0," in text


def test_a_degree_that_nobody_can_afford_is_refused():
    # 60 rows, e4 = 13/20 and 5 bits: k = 4 asks for 60 * 0.65 >= 1 * 2^6, k = 3 for 2 * 2^5, k = 2 for 3 * 2^4.
    split = (Fraction(1, 20), Fraction(1, 5), Fraction(1, 10), Fraction(13, 20))
    text = refusal(plan_of(degree=2, split=split))
    assert text == (
        "degree 2 cannot be afforded: with 60 rows and 13/20 for 'parameters', "
        "tables beyond degree 1 hold more noise than information"
    )
    assert terms_of(degree=1, split=split).limits.degree == 1  # 39 >= 4 * 2^3


def test_a_degree_over_other_domains_counts_cells():
    # 1000 rows, e4 = 13/20, 5 variables: 65 cells fit; the smallest domains are 2, 3, 3, 4: 18 cells fit, 72 do not.
    rows, split = (500, 300, 200), (Fraction(1, 20), Fraction(1, 5), Fraction(1, 10), Fraction(13, 20))
    assert "beyond degree 2 hold" in refusal(plan_of(MIXED, rows, degree=3, split=split), MIXED)
    assert terms_of(MIXED, rows, degree=2, split=split).limits.degree == 2


def test_a_degree_of_one_party_alone_is_judged_by_the_fewest_rows():
    rows = (10**6, 10)
    terms_of(BITS, rows, degree=3)
    assert "with 10 rows" in refusal(plan_of(BITS, rows, degree=3, method="independent"))


def test_a_degree_whose_families_are_too_many_is_refused():
    wide = Schema.parse(
        {"attributes": [{"name": f"v{i}", "kind": "categorical", "values": ["a", "b"]} for i in range(60)]}
    )
    text = refusal(plan_of(wide, (10**9, 10**9), epsilon=100, degree=6), wide)
    assert re.fullmatch(r"degree 6 means too many families to compare: choose degree [2-5] or less", text)


# Noise that is too wide


def test_shares_of_noise_must_be_in_reach():
    text = refusal(plan_of(noise="distributed", epsilon="0.0001"))
    assert text.startswith("the noise of 'correlations' is too wide: shares of noise at alpha = ")
    terms_of(noise="distributed", epsilon="0.2")


@pytest.mark.parametrize("noise", ["selected", "local"])
def test_full_noise_must_be_in_reach(noise):
    text = refusal(plan_of(noise=noise, epsilon=f"1/{10**17}"))
    assert text.startswith("the noise of 'correlations' is too wide: ")
    terms_of(noise=noise, epsilon=f"1/{10**6}")


@pytest.mark.parametrize(("method", "step"), [("dp-ccbn", "candidates/1"), ("independent", "models")])
def test_every_method_is_looked_at(method, step):
    text = refusal(plan_of(method=method, noise="local", epsilon=f"1/{10**17}"))
    assert text.startswith(f"the noise of {step!r} is too wide: ")


def test_updates_of_one_party_are_looked_at():
    split = (Fraction(1, 2), Fraction(1, 8), Fraction(1, 10**18), Fraction(1, 4))
    text = refusal(plan_of(noise="distributed", split=split))
    assert text.startswith("the noise of 'update/1' is too wide: ")


def test_totals_of_many_noises_must_fit_64_bits():
    # alpha = e / 2 / 5 tables, and 90 / alpha is just below 2^60: twelve of those bounds are more than 2^63.
    epsilon = f"{2 * 5 * 90}/{2**60 - 1}"
    wishes = {"noise": "local", "split": (NOTHING, NOTHING, NOTHING, Fraction(epsilon))}
    assert "more than 64 bits" in refusal(plan_of(rows=(3,) * 12, epsilon=epsilon, **wishes))
    terms_of(rows=(3,) * 7, epsilon=epsilon, **wishes)


def test_signing_keys_of_small_order_are_refused():
    first, second, third = (plan := plan_of()).members
    improper = (first, second, third.model_copy(update={"signing_key": b"\x01" + bytes(31)}))
    assert "the signing key of party-3 is improper" in refusal(changed(plan, members=improper))


def test_no_party_is_called_curator():
    first, second, third = (plan := plan_of()).members
    misleading = (first, second, third.model_copy(update={"name": "curator"}))
    assert "a party is called 'curator'" in refusal(changed(plan, members=misleading))


# Size


def bits(count: int) -> Schema:
    return Schema.parse(
        {"attributes": [{"name": f"a{n}", "kind": "categorical", "values": ["0", "1"]} for n in range(count)]}
    )


def codes(count: int) -> Schema:
    return Schema.parse(
        {"attributes": [{"name": f"a{n}", "kind": "integer", "min": 1, "max": 300 + n % 7} for n in range(count)]}
    )


@pytest.mark.parametrize(
    ("schema", "wishes", "words"),
    [
        (codes(500), {"preset": "paper"}, "has 4,500 variables (encoding binary), and at most 4,096 are possible"),
        (bits(1001), {"preset": "paper"}, "worked out for at most 1,000: choose another method"),
        (codes(401), {"update": "joint"}, "worked out for at most 400: choose another method"),
    ],
    ids=["variables", "views", "views of unequal sizes"],
)
def test_more_variables_than_can_be_worked_with_are_refused_at_once(schema, wishes, words):
    """A party judges a plan before it has seen how large that plan is."""
    plan = plan_of(BITS, **({"preset": "sound"} | wishes))
    began = process_time()
    text = refusal(changed(plan, schema_hash=schema.hash, picks=(0, 0, len(schema.names))), schema)
    assert words in text
    assert process_time() - began < 2


def test_more_parties_than_can_run_it_are_refused_before_their_keys_are_looked_at():
    """20,000 members and 2,000 attributes took a party minutes and more than 1 GB."""
    plan = plan_of()
    many = tuple(plan.members[0].model_copy(update={"name": f"party-{number}"}) for number in range(1001))
    words = "the plan has 1,001 parties, at most 1,000 can run it: leave some out"
    assert refusal(changed(plan, members=many)) == words


def test_more_charges_than_can_be_worked_out_are_refused(monkeypatch):
    monkeypatch.setattr("protocol.run.agreement.MOST_CHARGES", 3 * len(BITS.attributes) - 1)
    monkeypatch.setattr("protocol.run.agreement.terms_of", None)
    assert "whose product" in refusal(plan_of())


def bounded(plan: Plan, *bounds: int | None) -> Plan:
    members = zip(plan.members, bounds, strict=True)
    return changed(plan, members=tuple(one.model_copy(update={"rows_per_person": bound}) for one, bound in members))


def test_a_plan_protects_as_many_rows_as_a_party_has_of_a_person():
    assert refusal(bounded(plan_of(rows_per_person=2), 1, 3, None)) == (
        "party-2 has up to 3 rows per person, the plan protects 2: ask for rows_per_person=3, or for an offer of fewer"
    )
    agree(bounded(plan_of(rows_per_person=3), 1, 3, None), BITS, SMALL_BITS)


def test_nobody_has_rows_at_more_parties_than_there_are():
    assert refusal(changed(plan_of(), parties_per_person=4)) == (
        "parties_per_person is 4, and the plan has 3 parties: nobody can have rows at more"
    )


def test_replace_is_for_persons_at_one_party():
    plan = plan_of(update="replace", insiders=0, split=(SOME, SOME, NOTHING, SOME))
    assert "update=replace is priced for persons with rows at one party" in refusal(changed(plan, parties_per_person=2))


def test_plans_without_a_word_about_persons_are_as_they_were():
    """Older releases make such plans, and both must work out the same hash."""
    plan = plan_of()
    assert "per_person" not in plan.model_dump_json()
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    several = bounded(plan_of(rows_per_person=3, parties_per_person=2), 3, None, 1)
    found = Plan.model_validate_json(several.model_dump_json())
    assert (found.rows_per_person, found.parties_per_person) == (3, 2)
    assert [member.rows_per_person for member in found.members] == [3, None, 1]
    assert len({plan.hash(), several.hash(), changed(several, parties_per_person=1).hash()}) == 3
