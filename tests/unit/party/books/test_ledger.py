import hashlib
import os
import shutil
import sqlite3
import stat
import threading
from dataclasses import replace
from fractions import Fraction

import pytest

from party.books.budget import Claims
from party.books.ledger import Ledger
from party.books.ledger_tables import APPLICATION, MIGRATIONS, RECOVERED, REFUSAL
from party.errors import AnsweredOtherwise, BudgetExhausted, DiskFull, LedgerError, PolicyRefusal, Unreadable
from protocol.errors import OutOfTurn, PeerError
from protocol.messages.http import SentReceipt
from tests.support.party import account

PATIENTS = Claims(frozenset({"patients"}))
HALF, THIRD, ONE = Fraction(1, 2), Fraction(1, 3), Fraction(1)


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def ask(ledger, run="run-1", price=ONE, verdict="accept", dataset="patients", plan=None, reasons=("fits",)):
    return ledger.ask(
        run,
        plan_hash=hash_of(plan or run),
        dataset=dataset,
        plan="{}",
        schema_text="[]",
        price=price,
        verdict=verdict,
        reasons=reasons,
    )


def begin(ledger, run="run-1", price=ONE, total=Fraction(4)):
    ask(ledger, run, price)
    return ledger.reserve(run, account(total))


def record(ledger, run="run-1", step="correlations", charge=HALF, request="q", reply=b"bytes", kept=b"state"):
    return ledger.record(run, step, mechanism="count", charge=charge, request_digest=request, reply=reply, kept=kept)


def receipt(run, step, charge=HALF, reply=b"bytes"):
    digest = hashlib.sha256(reply).hexdigest()
    return SentReceipt(run=run, plan=hash_of(run), step=step, charge=charge, digest=digest, signature="0" * 128)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    ledger = Ledger.open(path, now=lambda: "2030-01-02T03:04:05")
    yield ledger
    ledger.close()


def test_an_invitation_is_noted_with_the_verdict(ledger):
    request = ask(ledger, verdict="ask", reasons=["compare fingerprints", "by hand"])
    assert (request.state, request.verdict, request.reasons) == ("asked", "ask", ("compare fingerprints", "by hand"))
    assert (request.price, request.spent, request.reserved, request.at) == (1, 0, 0, "2030-01-02T03:04:05")
    assert ledger.request("run-1") == request
    assert ledger.request("run-2") is None


def test_asked_again_the_first_verdict_stands(ledger):
    first = ask(ledger, verdict="ask")
    assert ask(ledger, verdict="accept", price=HALF) == first


@pytest.mark.parametrize(("run", "plan"), [("run-1", "another"), ("run-2", "run-1")])
def test_a_run_has_one_plan_and_a_plan_one_run(ledger, run, plan):
    ask(ledger)
    with pytest.raises(AnsweredOtherwise, match="curator: invites to 'run-1' again") as caught:
        ask(ledger, run, plan=plan)
    assert caught.value.culprit == "curator"
    assert isinstance(caught.value, PeerError)
    assert [request.run for request in ledger.requests()] == ["run-1"]


def test_requests_are_listed_by_state_in_their_order(ledger):
    for run, verdict in [("b", "ask"), ("a", "refuse"), ("c", "ask")]:
        ask(ledger, run, verdict=verdict)
    assert [request.run for request in ledger.requests()] == ["b", "a", "c"]
    assert [request.run for request in ledger.requests("asked")] == ["b", "c"]


def test_the_owner_decides_and_may_change_his_mind_until_the_run_begins(ledger):
    ask(ledger, verdict="ask")
    assert ledger.decide("run-1", True).state == "accepted"
    assert ledger.decide("run-1", True).state == "accepted"
    refused = ledger.decide("run-1", False, "not this year")
    assert (refused.state, refused.reason) == ("refused", "not this year")
    assert ledger.decide("run-1", False, "other words").reason == "not this year"
    with pytest.raises(LedgerError, match="'run-1' is refused already: it can no longer be accepted"):
        ledger.decide("run-1", True)


def test_the_policy_s_refusal_is_not_overruled(ledger):
    ask(ledger, verdict="refuse")
    with pytest.raises(LedgerError, match="is refused already"):
        ledger.decide("run-1", True)


def test_a_run_that_nobody_heard_of_is_no_run(ledger):
    for act in (
        lambda: ledger.decide("x", True),
        lambda: ledger.reserve("x", account(ONE)),
        lambda: record(ledger, "x"),
    ):
        with pytest.raises(LedgerError, match="the ledger knows no run 'x'"):
            act()
    assert ledger.kept("x") is None


def test_the_whole_price_is_set_aside_before_anything_is_spent(ledger):
    request = begin(ledger, price=Fraction(3, 4))
    assert (request.state, request.reserved) == ("active", Fraction(3, 4))
    assert (ledger.spent("patients"), ledger.reserved("patients")) == (0, Fraction(3, 4))
    assert ledger.reserve("run-1", account(Fraction(0))) == request  # again: it is set aside already


def test_a_third_three_times_is_exactly_all_and_not_a_hair_more(ledger):
    for run in "abc":
        begin(ledger, run, THIRD, total=ONE)
    with pytest.raises(BudgetExhausted, match=r"'d' costs 1/999999999999, .* of the 1 that 'patients' .* only 0 is"):
        begin(ledger, "d", Fraction(1, 999999999999), total=ONE)
    assert ledger.request("d").state == "accepted"
    assert ledger.reserved("patients") == 1


def test_a_lowered_total_leaves_nothing_rather_than_less(ledger):
    begin(ledger, "a", ONE, total=ONE)
    with pytest.raises(BudgetExhausted, match="only 0 is left"):
        begin(ledger, "b", ONE, total=HALF)


def test_data_sets_have_accounts_of_their_own(ledger):
    begin(ledger, "a", ONE, total=ONE)
    ask(ledger, "b", dataset="staff")
    ledger.reserve("b", account(ONE, dataset="staff"))
    record(ledger, "b", charge=THIRD)
    assert (ledger.spent("patients"), ledger.reserved("patients")) == (0, 1)
    assert (ledger.spent("staff"), ledger.reserved("staff")) == (THIRD, Fraction(2, 3))


@pytest.mark.parametrize("verdict", ["ask", "refuse"])
def test_only_an_accepted_run_begins(ledger, verdict):
    ask(ledger, verdict=verdict)
    with pytest.raises(LedgerError, match="only an accepted run can begin"):
        ledger.reserve("run-1", account(ONE))


def test_an_answer_moves_its_charge_from_reserved_to_spent(ledger):
    begin(ledger)
    assert record(ledger, charge=THIRD) == b"bytes"
    assert (ledger.spent("patients"), ledger.reserved("patients")) == (THIRD, Fraction(2, 3))
    stored = ledger.answered("run-1", "correlations")
    assert (stored.request_digest, stored.reply) == ("q", b"bytes")
    assert ledger.answered("run-1", "parameters") is None
    assert ledger.kept("run-1") == b"state"


def test_asked_again_the_first_bytes_are_the_ones_that_leave(ledger):
    begin(ledger)
    record(ledger)
    assert record(ledger, charge=THIRD, reply=b"fresh noise", kept=b"other") == b"bytes"
    assert ledger.spent("patients") == HALF
    assert ledger.kept("run-1") == b"state"


def test_another_request_for_an_answered_step_is_refused(ledger):
    begin(ledger)
    record(ledger)
    with pytest.raises(AnsweredOtherwise, match="'correlations' of 'run-1' again, but for something else than before"):
        record(ledger, request="p")
    assert ledger.spent("patients") == HALF


@pytest.mark.parametrize("charge", [Fraction(-1), Fraction(10001, 10000)])
def test_no_step_costs_more_than_is_left_of_the_price_or_pays_back(ledger, charge):
    begin(ledger)
    with pytest.raises(BudgetExhausted, match=f"costs {charge}, but only 1 of its price is left") as caught:
        record(ledger, charge=charge)
    assert isinstance(caught.value, PolicyRefusal)
    assert (ledger.answered("run-1", "correlations"), ledger.kept("run-1")) == (None, None)


def test_nothing_is_answered_before_the_run_is_active_or_after_it_ended(ledger):
    ask(ledger)
    with pytest.raises(OutOfTurn, match="curator: asks for 'correlations' of 'run-1', which is accepted"):
        record(ledger)
    ledger.reserve("run-1", account(ONE))
    record(ledger)
    ledger.settle("run-1", "cancelled")
    with pytest.raises(OutOfTurn, match="which is ended"):
        record(ledger, step="parameters")
    assert record(ledger) == b"bytes"  # what was answered once may be asked for again


def test_settling_frees_what_is_unspent_and_destroys_the_secrets(ledger):
    begin(ledger)
    record(ledger, charge=THIRD)
    settled = ledger.settle("run-1", "failed", "party-2 left")
    assert (settled.state, settled.outcome, settled.reason) == ("ended", "failed", "party-2 left")
    assert (settled.spent, settled.reserved, ledger.kept("run-1")) == (THIRD, 0, None)
    assert (ledger.spent("patients"), ledger.reserved("patients")) == (THIRD, 0)
    assert ledger.settle("run-1", "finished") == settled
    with pytest.raises(LedgerError, match="is ended: only an accepted run"):
        ledger.reserve("run-1", account(ONE))


ENDS = {
    "settled": lambda ledger: ledger.settle("run-1", "finished"),
    "declined": lambda ledger: ledger.decline("run-1", "parameters", request_digest="r", reply=b"no", reason="no"),
    "lost": lambda ledger: ledger.acknowledge([receipt("run-1", "parameters")], "patients"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_secrets_of_an_ended_run_are_not_in_the_files(ledger, path, end):
    secret = b"the share of the group key" * 100

    def on_disk():
        return b"".join(file.read_bytes() for file in path.parent.iterdir())

    begin(ledger)
    record(ledger, kept=secret)
    assert secret in on_disk()
    end(ledger)
    assert secret[:100] not in on_disk()


def test_a_run_ends_even_while_somebody_reads_the_log_that_holds_its_secrets(ledger, path):
    begin(ledger)
    record(ledger)
    other = Ledger.open(path)
    with other.database.reading() as reader:
        reader.execute("SELECT * FROM answers").fetchall()
        ledger.database.connection.execute("PRAGMA busy_timeout = 10")
        assert ledger.settle("run-1", "finished").state == "ended"
    other.close()


def test_a_refusal_is_an_answer_that_costs_nothing_and_ends_the_run(ledger):
    begin(ledger)
    record(ledger)
    refusal = {"request_digest": "r", "reply": b"no", "reason": "larger than the plan allows"}
    assert ledger.decline("run-1", "parameters", **refusal) == b"no"
    request = ledger.request("run-1")
    assert (request.state, request.outcome, request.reason) == ("ended", "refused", refusal["reason"])
    assert (request.spent, ledger.reserved("patients")) == (HALF, 0)
    assert ledger.decline("run-1", "parameters", **refusal | {"reply": b"no!"}) == b"no"
    assert ledger.entries()[-1].mechanism == REFUSAL
    with pytest.raises(OutOfTurn, match="which is ended"):
        ledger.decline("run-1", "update/1", **refusal)


def test_an_invitation_for_no_data_set_can_be_refused(ledger):
    ask(ledger, verdict="refuse", dataset=None)
    ledger.decline("run-1", "joining", request_digest="r", reply=b"no", reason="an unknown schema")
    assert ledger.answered("run-1", "joining").reply == b"no"
    ask(ledger, "run-2", verdict="accept", dataset=None)
    with pytest.raises(LedgerError, match="only an accepted run"):
        ledger.reserve("run-2", account(ONE))


def test_entries_tell_everything_of_one_data_set_or_run(ledger):
    begin(ledger, "a")
    begin(ledger, "b")
    record(ledger, "a", charge=THIRD)
    record(ledger, "b", charge=HALF)
    entry = ledger.entries(run="a")[0]
    assert (entry.dataset, entry.run, entry.step, entry.mechanism, entry.charge) == (
        "patients",
        "a",
        "correlations",
        "count",
        THIRD,
    )
    assert (entry.plan_hash, entry.reply_bytes, entry.reply_digest) == (
        hash_of("a"),
        5,
        hashlib.sha256(b"bytes").hexdigest(),
    )
    assert [entry.run for entry in ledger.entries(PATIENTS)] == ["a", "b"]
    assert ledger.entries(Claims(frozenset({"staff"}))) == []


# Durability


def test_everything_is_there_after_reopening(ledger, path):
    begin(ledger)
    record(ledger, charge=THIRD)
    before = ledger.requests(), ledger.entries()
    again = Ledger.open(path)  # while the first one is still open: a process that was killed closes nothing
    assert (again.requests(), again.entries()) == before
    assert again.answered("run-1", "correlations").reply == b"bytes"
    again.close()


def test_commits_wait_for_the_disk(ledger, path):
    settings = [ledger.database.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS]
    assert settings == list(_PRAGMAS.values())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "secure_delete": 1,
    "user_version": 3,
    "application_id": APPLICATION,
}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answers SET charge = '0'",
        "DELETE FROM answers",
        "DELETE FROM requests",
        "INSERT INTO answers VALUES ('nobody', 's', 'm', '0', 'd', 'd', x'00', 'now', '0')",
        "INSERT INTO answers SELECT * FROM answers",
        "UPDATE requests SET state = 'paid back'",
    ],
)
def test_the_file_itself_refuses_to_forget(ledger, path, statement):
    begin(ledger)
    record(ledger)
    ledger.acknowledge([receipt("lost", "correlations")], "patients")
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    raw.close()


def fill_up(ledger, spare_pages=0):
    connection = ledger.database.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + spare_pages}")


@pytest.mark.parametrize("spare_pages", [0, 1, 5])
def test_on_a_full_disk_nothing_is_half_written(ledger, spare_pages):
    begin(ledger)
    record(ledger, charge=THIRD)
    fill_up(ledger, spare_pages)
    with pytest.raises(DiskFull, match=r"the disk is full .*, nothing was written; make room and try again"):
        record(ledger, step="parameters", reply=os.urandom(100_000))
    assert (ledger.spent("patients"), ledger.reserved("patients")) == (THIRD, Fraction(2, 3))
    assert ledger.answered("run-1", "parameters") is None
    assert ledger.kept("run-1") == b"state"
    fill_up(ledger, 10**6)  # there is room again
    assert record(ledger, step="parameters", reply=b"now") == b"now"


def test_a_full_disk_does_not_lose_an_invitation_or_a_decision(ledger):
    ask(ledger, verdict="ask")
    fill_up(ledger)
    with pytest.raises(DiskFull):
        ledger.ask(
            "run-2", plan_hash="p", dataset=None, plan="x" * 10**5, schema_text="", price=ONE, verdict="ask", reasons=[]
        )
    assert [request.run for request in ledger.requests()] == ["run-1"]


def test_many_threads_share_one_ledger(ledger):
    begin(ledger)
    steps = [f"update/{number}" for number in range(40)]
    replies = {}

    def work(own):
        for step in steps:
            replies[own, step] = record(ledger, step=step, charge=Fraction(1, 40), reply=os.urandom(8))

    threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent("patients") == 1
    assert all(len({replies[own, step] for own in range(4)}) == 1 for step in steps)


def test_two_connections_never_spend_the_same_money(ledger, path):
    other = Ledger.open(path)
    for run in "ab":
        ask(ledger, run, price=Fraction(2, 3))
    ledger.reserve("a", account(ONE))
    with pytest.raises(BudgetExhausted):
        other.reserve("b", account(ONE))
    other.close()


def test_a_ledger_that_stays_locked_is_said_to_be_so(ledger, path, monkeypatch):
    monkeypatch.setattr("party.books.database.BUSY_SECONDS", 0.05)
    other = Ledger.open(path)
    with ledger.database.transaction(), pytest.raises(LedgerError, match=r"kept it locked for 0\.05 seconds"):
        ask(other)
    ask(other)
    other.close()


# Files that are no ledger


def test_a_file_that_is_no_database_is_refused(path):
    path.write_bytes(b"not a database at all" * 1000)
    with pytest.raises(Unreadable, match="not a database, or damaged"):
        Ledger.open(path)


def test_a_damaged_ledger_is_refused(ledger, path):
    begin(ledger)
    for number in range(50):
        record(ledger, step=f"s{number}", charge=Fraction(0), reply=os.urandom(3000))
    ledger.close()
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="damaged"):
        Ledger.open(path)


def test_another_program_s_database_is_left_alone(path):
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    with pytest.raises(Unreadable, match="a database of another program"):
        Ledger.open(path)


def test_an_older_version_s_ledger_keeps_what_is_in_it_and_owes_no_delta(path):
    with sqlite3.connect(path) as raw:
        for statement in MIGRATIONS[0]:
            raw.execute(statement)
        raw.execute(f"PRAGMA application_id = {APPLICATION}")
        raw.execute("PRAGMA user_version = 1")
        raw.execute(
            "INSERT INTO requests (run, plan_hash, dataset, plan, schema_text, price, verdict, reasons, state, at) "
            "VALUES ('old', 'h', 'patients', '{}', '[]', '1', 'accept', '[]', 'active', 'then')"
        )
        raw.execute("INSERT INTO answers VALUES ('old', 'correlations', 'count', '1/2', 'q', 'r', x'00', 'then')")
        raw.execute("INSERT INTO recovered VALUES ('lost', 'p', 'initial/1', 'patients', '1/3', 'd', 'then')")
    raw.close()
    ledger = Ledger.open(path)
    assert ledger.spent_amounts(PATIENTS) == (Fraction(5, 6), 0)
    assert ledger.reserved_amounts(PATIENTS) == (HALF, 0)
    assert [(entry.step, entry.charge, entry.delta) for entry in ledger.entries()] == [
        ("correlations", HALF, 0),
        ("initial/1", THIRD, 0),
    ]
    with pytest.raises(BudgetExhausted, match="a delta of 1/1000"):
        spend(ledger, "old", "update/1", HALF, TINY)
    ledger.close()


# Accounts


def claims(names=(), sources=(), budgets=()):
    return Claims(frozenset(names), frozenset(sources), frozenset(budgets))


def spent_as(ledger, run, dataset, source="", budget="", charge=THIRD):
    ledger.ask(
        run,
        plan_hash=hash_of(run),
        dataset=dataset,
        source=source,
        budget=budget,
        plan="{}",
        schema_text="[]",
        price=ONE,
        verdict="accept",
        reasons=(),
    )
    ledger.reserve(run, account(ONE, dataset=dataset))
    record(ledger, run, charge=charge)


@pytest.mark.parametrize(
    "claimed", [claims(["a"]), claims(sources=["s"]), claims(budgets=["b"]), claims(["a"], ["s"], ["b"])]
)
def test_a_charge_is_found_by_its_name_its_source_or_its_budget_and_counted_once(ledger, claimed):
    spent_as(ledger, "run-1", "a", "s", "b")
    spent_as(ledger, "run-2", "other", "t")
    assert ledger.spent_amounts(claimed) == (THIRD, 0)
    assert ledger.reserved_amounts(claimed) == (Fraction(2, 3), 0)
    assert [entry.run for entry in ledger.entries(claimed)] == ["run-1"]


def test_what_nobody_claims_is_named_with_what_is_set_aside_for_it(ledger):
    spent_as(ledger, "run-1", "a", "s", charge=THIRD)
    spent_as(ledger, "run-2", "b", "t")
    ledger.settle("run-2", "failed")
    ledger.acknowledge([receipt("lost", "correlations")], "b")
    ask(ledger, "run-3", dataset="c", verdict="refuse")
    ledger.decline("run-3", "joining", request_digest="r", reply=b"no", reason="no")
    assert ledger.unclaimed(claims(["d"])) == {"a": (1, 0), "b": (Fraction(5, 6), 0)}
    assert ledger.unclaimed(claims(["b"], ["s"])) == {}
    assert ledger.unclaimed(claims(sources=["", "t"])) == {"a": (1, 0), "b": (HALF, 0)}  # a lost run has no source


def test_what_was_spent_before_this_ledger_counts(ledger):
    ask(ledger, "run-1", price=ONE)
    with pytest.raises(BudgetExhausted, match=r"costs 1, but of the 3/2 that 'patients' may spend only 1/2 is left"):
        ledger.reserve("run-1", replace(account(Fraction(3, 2)), before=(ONE, Fraction(0))))
    assert ledger.reserve("run-1", replace(account(Fraction(2)), before=(ONE, Fraction(0)))).state == "active"


def test_a_lost_answer_is_charged_with_source_and_budget_of_its_run(ledger):
    spent_as(ledger, "run-1", "a", "s", "b", charge=Fraction(0))
    ledger.acknowledge([receipt("run-1", "parameters")], "other", "t", "u")
    ledger.acknowledge([receipt("unknown", "parameters", THIRD)], "other", "t", "u")
    assert ledger.spent_amounts(claims(budgets=["b"])) == (HALF, 0)
    assert ledger.spent_amounts(claims(sources=["t"])) == (THIRD, 0)


def test_a_ledger_of_the_second_version_keeps_every_charge_under_its_name(path):
    with sqlite3.connect(path) as raw:
        for statement in (*MIGRATIONS[0], *MIGRATIONS[1]):
            raw.execute(statement)
        raw.execute(f"PRAGMA application_id = {APPLICATION}")
        raw.execute("PRAGMA user_version = 2")
        raw.execute(
            "INSERT INTO requests "
            "(run, plan_hash, dataset, plan, schema_text, price, verdict, reasons, state, at, delta) "
            "VALUES ('old', 'h', 'patients', '{}', '[]', '1', 'accept', '[]', 'active', 'then', '1/100')"
        )
        raw.execute("INSERT INTO answers VALUES ('old', 'joining', 'count', '1/2', 'q', 'r', x'00', 'then', '1/1000')")
        raw.execute("INSERT INTO recovered VALUES ('lost', 'p', 'initial/1', 'staff', '1/3', 'd', 'then', '0')")
    raw.close()
    ledger = Ledger.open(path)
    assert ledger.spent_amounts(PATIENTS) == (HALF, TINY)
    assert ledger.reserved_amounts(PATIENTS) == (HALF, Fraction(9, 1000))
    assert ledger.unclaimed(PATIENTS) == {"staff": (THIRD, 0)}
    assert ledger.log_head() is None
    assert (ledger.stopped(), ledger.fruitless(), ledger.folded()) == ("", 0, 0)
    ledger.close()


def test_a_ledger_that_was_stopped_stays_so(ledger, path):
    ledger.stop("another copy answers")
    again = Ledger.open(path)
    assert again.stopped() == "another copy answers"
    again.resume()
    assert ledger.stopped() == ""
    again.close()


# Deltas

TINY = Fraction(1, 1000)


def with_delta(ledger, run="run-1", price=ONE, delta=TINY, totals=(Fraction(4), 3 * TINY)):
    ledger.ask(
        run,
        plan_hash=hash_of(run),
        dataset="patients",
        plan="{}",
        schema_text="[]",
        price=price,
        delta=delta,
        verdict="accept",
        reasons=(),
    )
    return ledger.reserve(run, account(*totals))


def spend(ledger, run, step, charge, delta):
    return ledger.record(
        run, step, mechanism="count", charge=charge, delta=delta, request_digest="q", reply=b"bytes", kept=None
    )


def test_deltas_are_set_aside_spent_and_freed_like_epsilons(ledger):
    request = with_delta(ledger)
    assert (request.delta, request.reserved_delta, request.spent_delta) == (TINY, TINY, 0)
    spend(ledger, "run-1", "correlations", HALF, TINY)
    spend(ledger, "run-1", "parameters", THIRD, Fraction(0))
    assert ledger.spent_amounts(PATIENTS) == (Fraction(5, 6), TINY)
    assert ledger.reserved_amounts(PATIENTS) == (Fraction(1, 6), 0)
    assert [entry.delta for entry in ledger.entries()] == [TINY, 0]
    with_delta(ledger, "run-2")
    ledger.settle("run-2", "failed")
    assert ledger.spent_amounts(PATIENTS) == (Fraction(5, 6), TINY)
    ledger.settle("run-1", "finished")
    assert ledger.reserved_amounts(PATIENTS) == (0, 0)


def test_a_delta_that_is_not_set_aside_is_not_spent(ledger):
    with_delta(ledger)
    spend(ledger, "run-1", "correlations", HALF, TINY)
    with pytest.raises(BudgetExhausted, match="costs a delta of 1/1000, but only 0 of it is left"):
        spend(ledger, "run-1", "parameters", Fraction(0), TINY)
    with pytest.raises(BudgetExhausted):
        spend(ledger, "run-1", "parameters", Fraction(0), -TINY)


def test_deltas_of_all_runs_add_up_to_the_total_at_most(ledger):
    for number in range(3):
        with_delta(ledger, f"run-{number}", Fraction(1, 10))
    with pytest.raises(BudgetExhausted, match="costs a delta of 1/1000, but of the 3/1000 "):
        with_delta(ledger, "run-3", Fraction(1, 10))


def test_without_a_word_of_the_owner_no_delta_is_spent(ledger):
    with pytest.raises(BudgetExhausted, match="of the 0 that 'patients' may spend"):
        with_delta(ledger, totals=(Fraction(4),))


def test_a_lost_answer_is_charged_with_its_delta(ledger):
    lost = receipt("lost", "correlations").model_copy(update={"delta": TINY})
    assert ledger.check_against([lost]) == [lost]
    ledger.acknowledge([lost], "patients")
    assert ledger.spent_amounts(PATIENTS) == (HALF, TINY)
    assert ledger.check_against([lost]) == []
    assert ledger.check_against([lost.model_copy(update={"delta": Fraction(0)})]) != []


def test_a_newer_version_s_ledger_is_refused(ledger, path):
    ledger.close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(Unreadable, match="its version is 99, this program knows 3: update the program"):
        Ledger.open(path)


def test_a_place_where_no_ledger_can_be_is_said_to_be_so(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened: Is a directory"):
        Ledger.open(tmp_path)


def test_other_trouble_names_the_file_and_what_sqlite_says(ledger, path):
    ledger.database.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(LedgerError, match=r"ledger\.db: cannot be used \(SQLITE_READONLY: "):
        ask(ledger)


# Rollback


def test_a_restored_ledger_misses_the_receipts_that_it_signed_later(ledger, path, tmp_path):
    begin(ledger)
    record(ledger, step="correlations", charge=HALF)
    backup = tmp_path / "backup.db"
    ledger.close()
    shutil.copy(path, backup)
    ledger = Ledger.open(path)
    record(ledger, step="parameters", charge=THIRD, reply=b"later")
    signed = [receipt("run-1", "correlations"), receipt("run-1", "parameters", THIRD, b"later")]
    assert ledger.check_against(signed) == []
    ledger.close()
    restored = Ledger.open(backup)
    assert restored.check_against(signed) == signed[1:]
    restored.acknowledge(signed[1:], "patients")
    assert restored.check_against(signed) == []
    assert restored.spent("patients") == HALF + THIRD
    assert (restored.request("run-1").state, restored.reserved("patients")) == ("ended", 0)
    assert [entry.mechanism for entry in restored.entries()] == ["count", RECOVERED]
    restored.acknowledge(signed[1:], "patients")
    assert restored.spent("patients") == HALF + THIRD
    restored.close()


@pytest.mark.parametrize("change", [{"charge": THIRD}, {"reply": b"other"}])
def test_a_receipt_for_another_answer_to_a_known_step_is_missing(ledger, change):
    begin(ledger)
    record(ledger)
    assert len(ledger.check_against([receipt("run-1", "correlations", **change)])) == 1


def test_what_an_empty_ledger_owes_is_charged_to_the_data_set_that_the_owner_names(ledger):
    lost = [receipt("a", "correlations"), receipt("a", "parameters", THIRD)]
    assert ledger.check_against(lost) == lost
    ledger.acknowledge(lost, "patients")
    assert ledger.spent("patients") == Fraction(5, 6)
    assert ledger.entries(PATIENTS, "a")[0].charge in (HALF, THIRD)


def test_a_run_of_the_lost_ledger_is_never_joined_again(ledger):
    ledger.acknowledge([receipt("a", "joining", Fraction(0))], "patients")
    request = ask(ledger, "a", verdict="accept")
    assert (request.state, request.verdict) == ("refused", "refuse")
    assert request.reasons == ("the ledger was restored from a time before this run's last answer",)


def test_a_run_for_no_data_set_is_charged_where_the_owner_says(ledger):
    ask(ledger, "a", verdict="refuse", dataset=None)
    ledger.settle("a", "refused")
    ledger.acknowledge([receipt("a", "correlations")], "patients")
    assert ledger.spent("patients") == HALF
    assert ledger.request("a").outcome == "refused"
