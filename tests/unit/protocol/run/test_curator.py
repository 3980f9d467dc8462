"""The curator's state machine: what it asks, in which order it listens, and whom it blames."""

import numpy as np
import pytest

from crypto.signing import sign
from protocol.errors import FailedCheck, MalformedMessage, OutOfTurn, PeerError
from protocol.messages.signatures import ACCEPTANCE_CONTEXT, acceptance_text
from protocol.messages.tasks import Acceptance, Contribution, Count, Invitation, Learn, Learned, Place, Placed, TakeBack
from protocol.run.curator import receive, tasks
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, Driver, identity, random_codes, terms_of

ROWS = (30, 20, 10)


@pytest.fixture
def plain() -> Driver:
    return driver(noise="distributed", epsilon=2)


def driver(schema=BITS, secret=None, rows=ROWS, clear=False, **wishes) -> Driver:
    return Driver(terms_of(schema, rows, **wishes), random_codes(schema, rows), secret, clear)


def refused(run: Driver, kind: type[PeerError], party: int, reply) -> str:
    """The refusal's text; whoever answered is named, and the state is as it was."""
    before = run.state
    with pytest.raises(kind) as error:
        receive(before, party, reply, run.opening)
    assert error.value.culprit == f"party-{party + 1}"
    assert run.state is before
    return str(error.value)


# What is asked


def test_a_run_begins_with_everybodys_invitation(plain):
    asked = plain.tasks()
    assert sorted(asked) == [0, 1, 2]
    for task in asked.values():
        assert isinstance(task, Invitation)
        assert task.proposal == plain.terms.plan
        assert Schema.parse(task.schema_text).hash == plain.terms.schema.hash


def test_the_same_is_asked_however_often(plain):
    plain.run_to("parameters")
    assert tasks(plain.state) == tasks(plain.state)


def test_kinds_of_tasks_follow_the_stages(plain):
    assert {type(task) for task in plain.run_to("correlations").tasks().values()} == {Count}
    assert {type(task) for task in plain.run_to("initial/2").tasks().values()} == {Place}
    assert {party: type(task) for party, task in plain.run_to("update/2").tasks().items()} == {1: Count}
    replacing = driver(update="replace", insiders=0, noise="local").run_to("update/2")
    assert {party: type(task) for party, task in replacing.tasks().items()} == {0: TakeBack, 1: Count}
    assert {type(task) for task in driver(method="independent").run_to("models").tasks().values()} == {Learn}


def test_a_finished_run_asks_nothing(plain):
    plain.finish()
    assert tasks(plain.state) == {}
    assert plain.state.waiting_for == ()
    assert plain.state.step is None


def test_keys_come_with_the_first_sum_pass_and_never_again(small_secret):
    run = driver(secret=small_secret)
    first = run.run_to("correlations").tasks()
    assert all(task.keys is not None for task in first.values())
    assert all(len(task.keys.contributions) == 3 for task in first.values())
    assert all(first[k].keys.contributions[k] == b"" for k in first)  # nobody seals to itself
    assert all(task.keys is None for task in run.run_to("parameters").tasks().values())


def test_where_correlations_have_no_budget_keys_come_with_the_parameters(small_secret):
    run = driver(secret=small_secret, split=(0, 0, 0, 1))
    assert all(task.keys is not None for task in run.run_to("parameters").tasks().values())
    run.finish()


# Who may answer


def test_the_run_waits_for_everybody(plain):
    for party, reply in plain.replies().items():
        assert party in plain.state.waiting_for
        plain.receive(party, reply)
        assert plain.state.step.name == ("joining" if party < 2 else "correlations")


def test_parties_may_answer_in_any_order(plain):
    plain.run_to("parameters")
    replies = plain.replies()
    for party in (2, 0, 1):
        plain.receive(party, replies[party])
    assert plain.state.step is None


@pytest.mark.parametrize("noise", ["distributed", "selected"])
def test_a_pass_is_added_up_as_answers_come(small_secret, noise):
    """However many have answered, one contribution's bytes are held; the total is that of all, in any order."""
    found = []
    for order in ((0, 1, 2), (2, 0, 1)):
        run = Driver(terms_of(noise=noise), random_codes(BITS, (30, 20, 10)), small_secret).run_to("correlations")
        replies = run.replies()
        for party in order[:2]:
            run.receive(party, replies[party])
            assert [len(one.blob) for one in run.state.replies.values() if one.blob] == [len(replies[0].blob)]
        run.receive(order[2], replies[order[2]])
        found.append([one.table.counts.tolist() for one in run.state.knowledge.released])
    assert found[0] == found[1]


def test_an_answer_counts_once(plain):
    replies = plain.replies()
    plain.receive(1, replies[1])
    assert refused(plain, OutOfTurn, 1, replies[1]) == "party-2: answered 'joining' twice"


def test_an_answer_to_another_step_is_out_of_turn(plain):
    early = plain.replies()
    for party, reply in early.items():
        plain.receive(party, reply)
    text = refused(plain, OutOfTurn, 0, early[0])
    assert text == "party-1: answered 'joining' of another plan or step, 'correlations' is due"


def test_an_answer_to_another_plan_is_out_of_turn(plain):
    reply = plain.replies()[0].model_copy(update={"plan": "0" * 64})
    assert "of another plan or step" in refused(plain, OutOfTurn, 0, reply)


def test_who_is_not_asked_must_not_answer(plain):
    plain.run_to("initial/1")
    placed = Placed(plan=plain.terms.plan_hash, step="initial/1", families=())
    assert refused(plain, OutOfTurn, 1, placed) == "party-2: answered 'initial/1', but no answer of this party is due"


def test_nobody_answers_after_the_end(plain):
    plain.finish()
    reply = Contribution(plan=plain.terms.plan_hash, step="parameters")
    assert "no answer of this party is due" in refused(plain, OutOfTurn, 0, reply)


def test_an_answer_of_the_wrong_kind_is_malformed(plain):
    plain.run_to("correlations")
    reply = Placed(plan=plain.terms.plan_hash, step="correlations", families=())
    text = refused(plain, MalformedMessage, 2, reply)
    assert text == "party-3: answered 'correlations' with a message of kind 'placed'"


# Acceptances


def test_acceptances_are_signatures_of_the_plan(plain):
    good = plain.replies()[0]
    context, text = ACCEPTANCE_CONTEXT, acceptance_text(plain.terms.plan_hash, good.exchange_key)
    forged = [
        sign(identity(1).signing, context, text),  # by another party
        sign(identity(0).signing, context, acceptance_text("0" * 64, good.exchange_key)),  # of another plan
        sign(identity(0).signing, context, acceptance_text(plain.terms.plan_hash, bytes(32))),  # of another key
        sign(identity(0).signing, b"another context", text),
        b"",
        bytes(64),
    ]
    for signature in forged:
        text = refused(plain, FailedCheck, 0, good.model_copy(update={"signature": signature}))
        assert text.startswith("party-1: did not sign this plan: ")
    plain.receive(0, good)


def test_an_exchange_key_that_hides_nothing_is_refused(plain):
    flat = bytes(32)  # a point of small order: whatever it is joined with, the secret is zero
    signature = sign(identity(0).signing, ACCEPTANCE_CONTEXT, acceptance_text(plain.terms.plan_hash, flat))
    reply = plain.replies()[0].model_copy(update={"exchange_key": flat, "signature": signature})
    assert refused(plain, FailedCheck, 0, reply).startswith("party-1: joins with an exchange key that hides nothing")


def test_acceptances_are_kept(plain):
    replies = plain.replies()
    for party, reply in replies.items():
        plain.receive(party, reply)
    assert plain.state.acceptances == replies


def test_shares_of_the_group_key_must_be_complete(small_secret, plain):
    run = driver(secret=small_secret)
    good = run.replies()[1]
    assert isinstance(good, Acceptance)
    missing = good.model_copy(update={"contributions": good.contributions[:2]})
    assert refused(run, FailedCheck, 1, missing) == "party-2: sent 2 key contributions, expected 3"
    unasked = plain.replies()[1].model_copy(update={"contributions": (b"", b"", b"")})
    assert refused(plain, FailedCheck, 1, unasked) == "party-2: sent 3 key contributions, expected 0"


# Contributions


@pytest.mark.parametrize("noise", ["selected", "distributed"])
@pytest.mark.parametrize("step", ["correlations", "update/2", "parameters"])
def test_contributions_have_one_length(small_secret, noise, step):
    run = driver(MIXED, small_secret, noise=noise, epsilon=50).run_to(step)
    party, good = next(iter(run.replies().items()))
    for blob in (good.blob[:-1], good.blob + b"\0", b""):
        text = refused(run, FailedCheck, party, good.model_copy(update={"blob": blob}))
        assert text == f"party-{party + 1}: sent {len(blob)} bytes for {step!r}, expected {len(good.blob)}"
    run.receive(party, good)


def test_noise_taken_back_has_one_length():
    run = driver(update="replace", insiders=0, noise="local", epsilon=20).run_to("update/2")
    good = run.replies()[0]
    longer = good.model_copy(update={"blob": good.blob + bytes(8)})
    assert "for 'update/2'" in refused(run, FailedCheck, 0, longer)


def test_plain_contributions_that_do_not_add_up_stop_the_run(plain):
    plain.run_to("parameters")
    replies = plain.replies()
    replies[1] = replies[1].model_copy(update={"blob": bytes(len(replies[1].blob))})
    plain.receive(0, replies[0])
    plain.receive(1, replies[1])
    with pytest.raises(FailedCheck, match=r"the parties: the contributions to 'parameters' do not add up: "):
        plain.receive(2, replies[2])


def test_selected_contributions_that_do_not_add_up_stop_the_run(small_secret):
    run = driver(MIXED, small_secret).run_to("parameters")
    replies = run.replies()
    twice = replies[0].model_copy(update={"blob": replies[1].blob})
    swapped = {**replies, 0: twice}  # one party's numbers twice, another's missing
    for party in (0, 1):
        run.receive(party, swapped[party])
    with pytest.raises(FailedCheck, match="the contributions to 'parameters' do not add up"):
        run.receive(2, swapped[2])


def test_a_ciphertext_that_is_none_names_its_sender(small_secret):
    run = driver(MIXED, small_secret).run_to("parameters")
    good = run.replies()[1]
    zeros = good.model_copy(update={"blob": bytes(len(good.blob))})
    assert "ciphertext 0 lies outside" in refused(run, FailedCheck, 1, zeros)
    shared = small_secret.public.n.to_bytes(small_secret.public.ciphertext_bytes, "big")
    factor = good.model_copy(update={"blob": shared + good.blob[len(shared) :]})
    assert "ciphertext 0 shares a factor with n" in refused(run, FailedCheck, 1, factor)


# Families


def placing() -> Driver:
    """Three variables of party-1 are placed, party-2 places the last two, and nobody may have parents."""
    run = driver(noise="local", split=("0", "1/2", "0", "1/2"), picks=(3, 2, 0), degree=0)
    return run.run_to("initial/2")


@pytest.mark.parametrize(
    ("families", "complaint"),
    [
        ([], "placed 0 variables, expected 2"),
        ([0], "placed 1 variables, expected 2"),
        ([0, 1, 0], "placed 3 variables, expected 2"),
        ([0, 0], "placed families that make no network: "),  # the same variable twice
        (["placed", 0], "placed families that make no network: "),
        (["unknown", 0], "placed families that make no network: "),
        (["cycle", "cycle back"], "placed families that make no network: "),
        (["forward", 1], "placed a variable before its parents"),
        ([0, "with a parent"], "in a family larger than the plan allows"),
    ],
)
def test_families_go_on_with_the_network(families, complaint):
    run = placing()
    placed = [family.child for family in run.state.knowledge.families]
    one, other = (v for v in range(5) if v not in placed)
    meant = {
        0: (one, ()),
        1: (other, ()),
        "placed": (placed[0], ()),
        "unknown": (7, ()),
        "cycle": (one, (other,)),
        "cycle back": (other, (one,)),
        "forward": (one, (other,)),
        "with a parent": (other, (placed[0],)),
    }
    reply = Placed(plan=run.terms.plan_hash, step="initial/2", families=tuple(meant[name] for name in families))
    assert complaint in refused(run, FailedCheck, 1, reply)


def test_a_model_is_judged_when_it_comes():
    run = driver(method="independent", epsilon=5).run_to("models")
    good = run.replies()[0]
    assert isinstance(good, Learned)
    fewer = good.model_copy(update={"families": good.families[:-1]})
    assert refused(run, FailedCheck, 0, fewer) == "party-1: placed 4 variables, expected 5"
    shorter = good.model_copy(update={"blob": good.blob[:-8]})
    text = refused(run, FailedCheck, 0, shorter)
    assert text == f"party-1: sent {len(good.blob) - 8} bytes of tables, expected {len(good.blob)}"
    wide = good.model_copy(update={"families": ((0, ()), (1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 3)))})
    assert "larger than the plan allows" in refused(run, FailedCheck, 0, wide)


# What is learned


def test_states_are_values(plain):
    """Every earlier state can be gone back to: nothing is changed in place."""
    states = [plain.state]
    while plain.state.step is not None:
        plain.finish_step()
        states.append(plain.state)
    assert [state.position for state in states] == list(range(len(states)))
    assert states[0].knowledge.families == ()
    assert states[0].replies == {}
    assert not states[0].knowledge.information.any()


def test_released_tables_carry_step_rows_and_variance():
    run = driver(MIXED, noise="local", epsilon=2).finish()
    released = run.state.knowledge.released
    by_step = {one.step: one.rows for one in released}
    assert by_step["correlations"] == by_step["parameters"] == 60
    assert {by_step.get(f"update/{k + 1}", rows) for k, rows in enumerate(ROWS)} == set(ROWS)
    assert all(one.table.variance > 0 for one in released)
    assert all(np.issubdtype(one.table.counts.dtype, np.integer) for one in released)


def test_replace_publishes_no_single_delivery():
    run = driver(update="replace", insiders=0, noise="local", epsilon=20).finish()
    assert {one.step for one in run.state.knowledge.released} == {"correlations", "parameters"}


def test_without_structure_everything_stands_alone():
    run = driver(noise="local", split=(0, 0, 0, 1)).finish()
    assert all(not family.parents for family in run.state.knowledge.network.families)
    ccbn = driver(noise="local", method="dp-ccbn", split=(0, 1)).finish()
    assert sorted(family.child for family in ccbn.state.knowledge.network.families) == list(range(5))
