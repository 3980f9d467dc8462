"""Invitations that a party cannot accept, and what it says then."""

import json
from dataclasses import replace

import pytest

from party.answering import invitation
from party.answering.answering import Answering
from protocol.messages.tasks import Invitation, decode, encode
from tests.support.fake_curator import FakeCurator
from tests.support.party import ROWS, Party, make_home, run_terms
from tests.support.party_runs import RUN, reason_of, task_of
from tests.support.small_runs import BITS, MIXED


def refused_because(party: Party, fake: FakeCurator) -> str:
    """The reason that reaches the curator when this party is invited; nothing is spent or set aside."""
    party.turns()
    run = fake.runs[RUN]
    assert (run.ended, run.culprit) == ("refused", party.name)
    assert party.ledger.spent("patients") == party.ledger.reserved("patients") == 0
    audited = [entry["event"] for entry in party.audited()]
    assert audited[:2] == ["asked", "judged"]
    assert audited[-1] == "refused"
    assert party.ledger.request(RUN).state == "ended"
    return run.reason


def test_a_refusal_by_policy_reaches_the_curator_with_its_reasons(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, per_run="1/2", more="\n"), 0, fake)
    fake.start(run_terms(epsilon=1))
    assert refused_because(party, fake) == "it costs 1, one run may cost 1/2"


def test_what_is_left_is_not_overspent_by_two_runs(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, total="3/2"), 0, fake)
    fake.start(run_terms("run-0", epsilon=1))
    fake.start(run_terms(RUN, epsilon=1))
    party.turns(2)
    assert fake.runs["run-0"].ended is None
    assert fake.runs[RUN].reason == "it costs 1, only 1/2 is left of 3/2 (0 spent, 1 set aside)"
    assert party.ledger.reserved("patients") == 1


def test_two_decisions_on_one_budget_are_not_both_kept(tmp_path, fake):
    """Each alone fits; the second finds the budget set aside."""
    party = Party(make_home(tmp_path / "home", 0, fake, total="3/2", accept="ask"), 0, fake)
    for run in ("run-0", RUN):
        fake.start(run_terms(run, epsilon=1))
    party.turns(2)
    for run in ("run-0", RUN):
        party.ledger.decide(run, accept=True)
    party.turns()
    assert fake.runs["run-0"].ended is None
    assert fake.runs[RUN].reason.startswith(
        "'run-1' costs 1, but of the 3/2 that 'patients' may spend only 1/2 is left"
    )


def test_a_plan_that_nobody_foresaw_is_refused_and_does_not_stop_the_party(tmp_path, fake, monkeypatch):
    """It would stop again at each restart, with the invitation still in its inbox."""

    def breaks(*_: object) -> None:
        raise ZeroDivisionError("17 rows")

    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    fake.start(run_terms())
    monkeypatch.setattr(invitation, "agree", breaks)
    assert refused_because(party, fake) == "curator: asks in 'joining' for what cannot be worked out"


def test_picks_of_more_parties_than_there_are_do_not_stop_the_party(tmp_path, fake):
    party, terms = Party(make_home(tmp_path / "home", 0, fake), 0, fake), run_terms()
    plan = terms.plan.model_copy(update={"picks": (1, 1, 1, 1, 1)})
    task = Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text=terms.schema.to_json())
    assert "the plan has picks of 5 parties" in reason_of(party.answering.handle(RUN, encode(task)).reply)


def test_a_schema_of_no_data_set_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, schema=MIXED), 0, fake)
    fake.start(run_terms(schema=BITS))
    assert "has no data set with the schema" in refused_because(party, fake)


def test_terms_are_not_worked_out_for_a_schema_of_no_data_set(tmp_path, fake, monkeypatch):
    party = Party(make_home(tmp_path / "home", 0, fake, schema=MIXED), 0, fake)
    fake.start(run_terms(schema=BITS))
    monkeypatch.setattr(invitation, "agree", lambda *_: 1 / 0)
    assert "has no data set with the schema" in refused_because(party, fake)


def test_a_roster_without_this_party_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 3, fake, rows=(*ROWS, 5)), 3, fake)
    fake.start(run_terms())
    plan = fake.runs[RUN].terms.plan
    others = Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text=BITS.to_json())
    refusal = party.answering.handle(RUN, encode(others))
    assert "the signing key of party-4 is not in the plan's roster" in reason_of(refusal.reply)


def test_a_plan_that_knows_this_party_by_another_name_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    text = party.home.settings.read_text().replace('name = "party-1"', 'name = "party-9"')
    party.home.settings.write_text(text)
    fake.start(run_terms())
    task = task_of(fake, party)
    assert "under another name or exchange key" in reason_of(party.killed().answering.handle(RUN, task).reply)


def test_other_rows_than_the_plan_says_are_refused_before_anything_is_spent(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    table = tmp_path / "home" / "patients.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-2]) + "\n")
    fake.start(run_terms())
    assert refused_because(party, fake).startswith("party-1 holds 28 rows, the plan says 30")


def test_a_table_that_does_not_fit_is_refused_without_saying_where(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    table = tmp_path / "home" / "patients.csv"
    table.write_text(table.read_text().replace("yes", "perhaps", 1))
    fake.start(run_terms())
    reason = refused_because(party, fake)
    assert reason.startswith("the table of party-1 cannot be read under this schema; `subn-party check` shows")
    assert "perhaps" not in json.dumps(party.audited())


def test_a_plan_under_another_plans_hash_is_refused(fake, parties):
    fake.start(run_terms())
    invitation = decode(task_of(fake, parties[0]), "curator")
    forged = encode(invitation.model_copy(update={"plan": "0" * 64}))
    assert "invites under the hash of another plan" in reason_of(parties[0].answering.handle(RUN, forged).reply)


def test_small_keys_are_refused_where_no_test_allows_them(tmp_path, fake, small_secret):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    party.answering = Answering(party.opened)
    fake.start(run_terms(noise="selected"), small_secret)
    assert "a Paillier key of 512 bits is too small" in refused_because(party, fake)


def test_a_data_set_that_went_away_after_the_invitation_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    party.ledger.decide(RUN, accept=True)
    text = party.home.settings.read_text().replace("datasets.patients", "datasets.others")
    party.home.settings.write_text(text)
    party.killed().turns()
    assert fake.runs[RUN].reason == "this party no longer has the data set 'patients'"


def invited(tmp_path, fake, setting, terms):
    """A party whose data set has this setting, invited to a run of these terms."""
    home = make_home(tmp_path / "home", 0, fake)
    home.settings.write_text(home.settings.read_text().replace("epsilon_total", f"{setting}\nepsilon_total", 1))
    fake.start(terms)
    return Party(home, 0, fake)


def test_a_plan_for_persons_with_several_rows_needs_a_person_key_or_the_owner_s_word(tmp_path, fake):
    party = invited(tmp_path, fake, "", run_terms(rows_per_person=3))
    assert refused_because(party, fake) == (
        "the plan is for persons with up to 3 rows, and the data set of party-1 names no person key: its data owner "
        "sets person_key in party.toml, or rows_per_person if nobody has more rows"
    )


def test_the_owner_s_word_is_taken_up_to_what_the_plan_protects(tmp_path, fake):
    party = invited(tmp_path, fake, "rows_per_person = 3", run_terms(rows_per_person=3))
    party.turns()
    assert fake.runs[RUN].ended is None
    assert party.ledger.reserved("patients") == 1


def test_a_plan_that_protects_fewer_rows_than_the_owner_s_word_is_refused(tmp_path, fake):
    party = invited(tmp_path, fake, "rows_per_person = 4", run_terms(rows_per_person=3))
    assert refused_because(party, fake) == (
        "persons have up to 4 rows at party-1, the plan protects 3: ask for a plan with rows_per_person=4"
    )


@pytest.mark.parametrize(
    ("setting", "said", "words"),
    [
        ("", 1, "has no person key, the plan says at most 1 row per person"),
        ('person_key = "a"\nrows_per_person = 3', None, "has at most 3 rows per person, the plan says no person key"),
        ('person_key = "a"', 2, "has at most 1 row per person, the plan says at most 2 rows per person"),
    ],
)
def test_a_plan_that_says_otherwise_how_rows_are_bounded_is_refused(tmp_path, fake, setting, said, words):
    terms = run_terms(rows_per_person=3)
    first, *others = terms.plan.members
    members = (first.model_copy(update={"rows_per_person": said}), *others)
    terms = replace(terms, plan=terms.plan.model_copy(update={"members": members}))
    party = invited(tmp_path, fake, setting, terms)
    reason = refused_because(party, fake)
    assert reason == f"party-1 {words}: offer the data set again, then ask for a new plan"
