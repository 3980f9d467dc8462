from dataclasses import replace
from fractions import Fraction

import pytest

from party.answering.policy import Verdict, judge
from party.books.budget import Budget
from party.home.keys import peer_fingerprint
from party.home.settings import Peer, Policy
from tests.support.small_runs import MIXED, members, terms_of

BUDGET = Budget(total=Fraction(4), spent=Fraction(1), reserved=Fraction(1))
PRINTS = [peer_fingerprint(member.signing_key, member.exchange_key) for member in members((30, 20, 10))]
PEERS = {f"party-{number}": Peer(fingerprint=text) for number, text in enumerate(PRINTS, start=1)}


def policy(**rules):
    return Policy.model_validate({"epsilon_per_run": "1", "accept": "auto"} | rules, strict=False)


def verdict(rules=None, peers=PEERS, budget=BUDGET, me=0, **plan):
    return judge(policy(**(rules or {})), peers, terms_of(**plan), me, budget)


def test_what_every_rule_allows_is_accepted():
    assert verdict() == Verdict("accept", ("every rule allows it",))


def test_a_careful_owner_is_asked():
    assert verdict({"accept": "ask"}) == Verdict("ask", ("every run is accepted by hand",))


@pytest.mark.parametrize(
    ("rules", "plan", "reason"),
    [
        ({"methods": ["dp-ccbn"]}, {}, "the method is dp-subn, allowed are dp-ccbn"),
        ({"noise": ["local", "distributed"]}, {}, "the noise is selected, allowed are local, distributed"),
        (
            {"updates": ["joint", "turns"]},
            {"update": "replace", "insiders": 0},
            "the update is replace, allowed are joint, turns",
        ),
        ({"smallest_parties": 4}, {}, "it has 3 parties, at least 4 are needed"),
        ({"smallest_rows": 11}, {}, "party-3 has 10 rows, everybody needs at least 11"),
        ({"smallest_insiders": 2}, {}, "it protects from 1 other party, at least 2 are needed"),
        ({"epsilon_per_run": "0.9999999999"}, {}, "it costs 1, one run may cost 9999999999/10000000000"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_the_reason(rules, plan, reason):
    found = verdict(rules, **plan)
    assert found.decision == "refuse"
    assert reason in found.reasons


def test_what_other_parties_can_see_through_is_refused_unless_the_owner_allows_it():
    plan = {"update": "replace", "insiders": 0}
    allowed = {"smallest_insiders": 0}
    refused = verdict(allowed, **plan)
    assert refused.decision == "refuse"
    assert [reason for reason in refused.reasons if reason.startswith("the update is replace")] == list(refused.reasons)
    assert verdict(allowed | {"updates": ["replace"]}, **plan).decision == "accept"


ZCDP = {"privacy": "zcdp", "delta": Fraction(1, 1000)}


def test_no_delta_is_spent_unless_the_owner_allows_one():
    found = verdict(**ZCDP)
    assert found.decision == "refuse"
    assert found.reasons == (
        "it costs a delta of 1/1000, one run may cost none: it has to be pure",
        "it costs a delta of 1/1000, only 0 is left of 0 (0 spent, 0 set aside)",
    )


def test_an_allowed_delta_is_allowed_up_to_both_limits():
    money = {"delta_total": Fraction(3, 1000), "delta_spent": Fraction(1, 1000), "delta_reserved": Fraction(1, 1000)}
    allowed = replace(BUDGET, **money)
    assert verdict({"delta_per_run": "1e-3"}, budget=allowed, **ZCDP).decision == "accept"
    per_run = verdict({"delta_per_run": "0.00099"}, budget=allowed, **ZCDP)
    assert per_run.reasons == ("it costs a delta of 1/1000, one run may cost 99/100000",)
    spent = replace(allowed, delta_spent=Fraction(3, 2000))
    assert verdict({"delta_per_run": "0.1"}, budget=spent, **ZCDP).reasons == (
        "it costs a delta of 1/1000, only 1/2000 is left of 3/1000 (3/2000 spent, 1/1000 set aside)",
    )


def test_all_reasons_are_given_at_once_and_no_question_is_asked():
    found = verdict({"methods": ["dp-ccbn"], "smallest_parties": 4, "smallest_rows": 25, "accept": "ask"}, peers={})
    assert found == Verdict(
        "refuse",
        (
            "the method is dp-subn, allowed are dp-ccbn",
            "it has 3 parties, at least 4 are needed",
            "party-2 has 20 rows, everybody needs at least 25",
            "party-3 has 10 rows, everybody needs at least 25",
        ),
    )


@pytest.mark.parametrize(
    ("plan", "rules"),
    [
        ({"method": "independent"}, {"noise": ["local"], "smallest_insiders": 2}),
        ({"method": "dp-ccbn"}, {"updates": ["joint"]}),
        ({"split": tuple(map(Fraction, ("0.25", "0.25", "0", "0.5")))}, {"updates": ["joint"]}),
    ],
)
def test_a_rule_about_what_a_plan_does_not_do_is_not_broken(plan, rules):
    assert verdict(rules, schema=MIXED, **plan).decision == "accept"


def test_the_last_bit_of_a_budget_can_be_spent_and_nothing_beyond_it():
    assert verdict(budget=replace(BUDGET, reserved=Fraction(2))).decision == "accept"
    over = Budget(Fraction(4), Fraction(1), Fraction(2) + Fraction(1, 10**30))
    found = verdict(budget=over)
    left = Fraction(1) - Fraction(1, 10**30)
    assert found.reasons == (f"it costs 1, only {left} is left of 4 (1 spent, {over.reserved} set aside)",)


def test_nothing_is_left_of_a_budget_that_was_lowered():
    assert Budget(Fraction(1), Fraction(2), Fraction(0)).left == 0


def test_each_party_looks_at_its_own_price():
    """With update=replace the first party pays three times what the last one pays for phase 3."""
    rules = {"updates": ["replace"], "smallest_insiders": 0, "epsilon_per_run": "0.9"}
    plan = {"update": "replace", "insiders": 0, "split": tuple(map(Fraction, ("0.1", "0.1", "0.2", "0.2")))}
    assert verdict(rules, me=0, **plan).reasons == ("it costs 1, one run may cost 9/10",)
    assert verdict(rules, me=2, **plan).decision == "accept"


def test_a_stranger_s_fingerprint_is_to_be_compared_first():
    known = {name: peer for name, peer in PEERS.items() if name != "party-2"}
    assert verdict(peers=known) == Verdict(
        "ask", (f"compare the fingerprint of party-2 with its data owner: {PRINTS[1]}",)
    )
    assert verdict(peers=known, me=1).decision == "accept"  # nobody is a stranger to himself


def test_a_stranger_whose_name_can_be_taken_for_another_is_told():
    """The letters of "раrtу" are Cyrillic but for two, as in a name that is chosen to be overlooked."""
    known = {name: peer for name, peer in PEERS.items() if name != "party-2"} | {"раrtу-2": PEERS["party-2"]}
    (reason,) = verdict(peers=known).reasons
    assert reason.endswith("; its name can be taken for раrtу-2")


@pytest.mark.parametrize("key", ["signing_key", "exchange_key"])
def test_another_key_under_a_known_name_is_refused(key):
    terms = terms_of()
    changed = terms.plan.members[1].model_copy(update={key: bytes(32)})
    plan = terms.plan.model_copy(update={"members": (terms.plan.members[0], changed, terms.plan.members[2])})
    found = judge(policy(), PEERS, replace(terms, plan=plan), 0, BUDGET)
    assert found.decision == "refuse"
    assert found.reasons[0].startswith("party-2 has the fingerprint ")
    assert found.reasons[0].endswith(f"you have noted {PRINTS[1]}: its keys have changed, or are another's")


def test_a_fingerprint_is_what_the_settings_expect():
    assert len(set(PRINTS)) == 3
    assert all(Peer(fingerprint=text) for text in PRINTS)
