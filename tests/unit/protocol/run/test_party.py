"""One party's side: what it answers once, what it refuses, whom it blames, and what never prints."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from crypto.paillier.indicator import make_indicator, prove_indicator
from crypto.paillier.modulus import prove_modulus
from crypto.paillier.public import PublicKey
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sealing import info_for, seal
from curator.runs.run_crypto import public_half
from protocol.errors import CURATOR, DataError, FailedCheck, OutOfTurn, PeerError
from protocol.messages.tasks import Count, Invitation, Learn, Place, TakeBack
from protocol.run.party import accept, answer, check
from protocol.secure_sum.selected import proven_for, selected_sums
from protocol.stages.party_state import PartyState
from protocol.tables.counting import Rows
from tests.support.bad_modulus import bad_modulus
from tests.support.small_runs import BITS, MIXED, Driver, identity, random_codes, terms_of

ROWS = (30, 20, 10)


def driver(schema=BITS, secret=None, rows=ROWS, **wishes) -> Driver:
    return Driver(terms_of(schema, rows, **wishes), random_codes(schema, rows), secret)


def refused(state: PartyState, kind: type[PeerError], task, culprit: str = CURATOR) -> str:
    """The refusal's text. It comes before rows are looked at: there are none here."""
    with pytest.raises(kind) as error:
        check(state, task)
    assert error.value.culprit == culprit
    return str(error.value)


def plain(step: str, **wishes) -> tuple[Driver, PartyState, Count | TakeBack | Place]:
    """A run without Paillier at this step, the first asked party's state, and its task."""
    run = driver(**({"noise": "local", "epsilon": 50} | wishes)).run_to(step)
    party, task = next(iter(run.tasks().items()))
    return run, run.parties[party], task


# Joining


def test_the_plan_says_how_many_rows_a_party_has():
    terms = terms_of()
    rows = Rows(terms.domain, [np.zeros(29, dtype=np.uint8)] * 5)
    with pytest.raises(DataError, match="party-1 holds 29 rows, the plan says 30: ask for a new plan"):
        accept(terms, 0, identity(0), rows, Stream.keyed(b"test"))


def test_who_needs_no_group_key_sends_none():
    for wishes in ({"noise": "local"}, {"method": "independent"}):
        assert driver(**wishes).replies()[0].contributions == ()


def test_shares_of_the_group_key_are_fresh(small_secret):
    run = driver(secret=small_secret)
    run.replies()
    assert len({state.share for state in run.parties}) == 3
    assert all(len(state.share) == 32 for state in run.parties)


# Out of turn


def test_a_step_is_answered_once():
    run, _, task = plain("correlations")
    run.answer(0, task)
    text = refused(run.parties[0], OutOfTurn, task)
    assert text == "curator: asks for 'correlations' of another plan or step, 'initial/1' is due"


@pytest.mark.parametrize("step", ["update/1", "parameters"])
def test_every_stage_is_answered_once(step):
    run, state, task = plain(step)
    party = state.me
    run.answer(party, task)
    refused(run.parties[party], OutOfTurn, task)


def test_after_the_last_step_nothing_is_due():
    run, _, task = plain("parameters")
    run.answer(0, task)
    assert run.parties[0].due is None
    assert refused(run.parties[0], OutOfTurn, task) == "curator: sent 'count', nothing of that kind is due"


def test_nobody_is_invited_twice():
    run = driver(noise="local")
    invitation = run.tasks()[0]
    assert isinstance(invitation, Invitation)
    run.finish_step()
    assert refused(run.parties[0], OutOfTurn, invitation) == "curator: sent 'invitation', nothing of that kind is due"


def test_steps_cannot_be_skipped():
    run, state, _ = plain("initial/1")
    later = Count(plan=run.terms.plan_hash, step="parameters", tables=((0,),))
    text = refused(state, OutOfTurn, later)
    assert text == "curator: asks for 'parameters' of another plan or step, 'initial/1' is due"


def test_steps_of_others_are_not_waited_for():
    run, _, _ = plain("update/1")
    assert [run.parties[party].due.name for party in range(3)] == ["update/1", "update/2", "update/3"]


def test_another_plans_task_is_out_of_turn():
    _, state, task = plain("correlations")
    assert "of another plan or step" in refused(state, OutOfTurn, task.model_copy(update={"plan": "0" * 64}))


@pytest.mark.parametrize("step", ["correlations", "initial/1", "update/1", "parameters"])
def test_a_task_of_the_wrong_kind_is_out_of_turn(step):
    run, state, task = plain(step)
    common = {"plan": run.terms.plan_hash, "step": step}
    others = [
        Count(**common, tables=((0,),)),
        Place(**common, families=()),
        Learn(**common),
        TakeBack(**common, tables=()),
    ]
    for other in others:
        if other.kind != task.kind:
            assert refused(state, OutOfTurn, other) == (
                f"curator: sent {other.kind!r} for {step!r}, which has tasks of another kind"
            )
    assert check(state, task).step.name == step


def test_learning_is_asked_by_learn_alone():
    run, state, _ = plain("models", method="independent")
    task = Count(plan=run.terms.plan_hash, step="models", tables=((0,),))
    assert refused(state, OutOfTurn, task) == "curator: sent 'count' for 'models', which has tasks of another kind"


# Tables


def asked(task: Count, *tables, **more) -> Count:
    return task.model_copy(update={"tables": tables} | more)


def test_correlations_are_the_plans_views():
    _, state, task = plain("correlations")
    for tables in ((), task.tables[:-1], (*task.tables, (0,)), tuple(reversed(((0, 1), *task.tables)))):
        text = refused(state, FailedCheck, asked(task, *tables))
        assert text == "curator: asks for other views than the plan's in 'correlations'"


@pytest.mark.parametrize("step", ["update/1", "parameters"])
def test_tables_are_sets_of_known_variables(step):
    _, state, task = plain(step)
    for table in ((5,), (0, 99), (0, 0), (1, 0, 1), ()):
        text = refused(state, FailedCheck, asked(task, (0,), table))
        assert text == f"curator: asks for a table over {table} in {step!r}, which is no set of variables"


def test_two_variants_of_one_variable_are_no_set():
    run, state, task = plain("parameters", schema=MIXED, encoding="hierarchical")
    variants = run.terms.domain.variants[0]
    assert len(variants) > 1
    assert "no set of variables" in refused(state, FailedCheck, asked(task, variants[:2]))


def test_no_table_is_asked_twice():
    _, state, task = plain("parameters")
    assert refused(state, FailedCheck, asked(task, (0,), (0,))) == "curator: asks for a table twice in 'parameters'"


def test_there_are_at_most_as_many_tables_as_variables():
    _, state, task = plain("parameters")
    tables = [(0,), (1,), (2,), (3,), (4,), (0, 1)]
    text = refused(state, FailedCheck, asked(task, *tables))
    assert text == "curator: asks for 6 tables in 'parameters', expected at most 5"


def test_tables_are_no_larger_than_the_plan_allows():
    _, state, task = plain("parameters", degree=1)
    check(state, asked(task, (0, 1)))
    text = refused(state, FailedCheck, asked(task, (0, 1, 2)))
    assert text == "curator: asks for a table over (0, 1, 2) in 'parameters', larger than the plan allows"


def test_tables_of_an_update_may_be_as_large_as_the_frontier_allows():
    run, state, task = plain("update/1", degree=1)
    wide = tuple(range(run.terms.frontier_limits.degree + 1))
    assert len(wide) > 2
    check(state, asked(task, wide))


def test_dp_ccbn_compares_more_tables_than_there_are_variables():
    _, state, task = plain("candidates/3", method="dp-ccbn", degree=2)
    assert len(task.tables) > 5
    check(state, task)
    other_candidates = "other tables than the candidates"
    assert other_candidates in refused(state, FailedCheck, asked(task, *task.tables, task.tables[0]))
    assert other_candidates in refused(state, FailedCheck, asked(task, *task.tables[1:]))
    assert other_candidates in refused(state, FailedCheck, asked(task, *reversed(task.tables)))
    assert other_candidates in refused(state, FailedCheck, asked(task))


# Placing


@pytest.mark.parametrize(
    ("families", "complaint"),
    [
        ((), "sent 0 placed variables for 'initial/2', expected 2"),
        (((0, ()),), "sent 1 placed variables for 'initial/2', expected 2"),
        (((0, ()), (0, ())), "sent families that make no network: "),
        (((0, (1,)), (1, (0,))), "sent families that make no network: "),
        (((0, ()), (9, ())), "sent families that make no network: "),
    ],
)
def test_the_network_so_far_must_be_one(families, complaint):
    run = driver(noise="local", picks=(2, 2, 1)).run_to("initial/2")
    task = run.tasks()[1].model_copy(update={"families": families})
    assert complaint in refused(run.parties[1], FailedCheck, task)


# Keys


def keyed(secret: SecretKey) -> tuple[Driver, PartyState, Count]:
    run = driver(secret=secret).run_to("correlations")
    return run, run.parties[1], run.tasks()[1]


def with_keys(task: Count, **changes) -> Count:
    return task.model_copy(update={"keys": task.keys.model_copy(update=changes)})


def key_refusal(run: Driver, task: Count, culprit: str = CURATOR) -> str:
    with pytest.raises(FailedCheck) as error:
        answer(run.parties[1], check(run.parties[1], task), run.rows[1], run.streams[1])
    assert error.value.culprit == culprit
    return str(error.value)


def test_without_keys_there_is_no_sum(small_secret):
    run, _, task = keyed(small_secret)
    text = key_refusal(run, task.model_copy(update={"keys": None}))
    assert text == "curator: sent no keys with the first sum pass 'correlations'"


@pytest.mark.parametrize("later", ["update/1", "parameters"])
def test_keys_come_once_and_with_the_first_sum_alone(small_secret, later):
    """A second indicator would be kept beside the first one, and stand in its place after a restart."""
    _, _, first = keyed(small_secret)
    run = driver(secret=small_secret).run_to(later)
    party, task = next(iter(run.tasks().items()))
    assert task.keys is None
    text = refused(run.parties[party], FailedCheck, task.model_copy(update={"keys": first.keys}))
    assert text == f"curator: sends keys with {later!r}, which only the first encrypted pass brings"


def test_keys_where_nothing_is_encrypted_are_refused(small_secret):
    _, _, keys = keyed(small_secret)
    _, state, task = plain("correlations", noise="distributed")
    assert "sends keys" in refused(state, FailedCheck, task.model_copy(update={"keys": keys.keys}))


def test_bad_keys_are_refused(small_secret):
    run, _, task = keyed(small_secret)
    good = task.keys.public_key
    even = good[:-1] + bytes([good[-1] & 0xFE])
    for bad in (b"", good[1:], bytes(len(good)), even, good + b"\x01" * 8):
        assert "sent keys that this party does not accept" in key_refusal(run, with_keys(task, public_key=bad))


def test_a_key_smaller_than_the_plans_is_refused(small_secret):
    small = SecretKey.generate(256)
    run, _, task = keyed(small_secret)
    indicator = make_indicator(small.public, 3, 2, Stream.keyed(b"test"), b"").to_bytes(small.public)
    weak = with_keys(task, public_key=small.public.to_bytes(), indicator=indicator)
    assert "a Paillier key of 256 bits was offered" in key_refusal(run, weak)


def test_a_key_larger_than_the_plans_is_refused(small_secret):
    large = SecretKey.generate(768)
    run, _, task = keyed(small_secret)
    keys = asdict(public_half(large, run.terms.plan, Stream.keyed(b"test")))
    other = with_keys(task, **keys)
    assert key_refusal(run, other) == "curator: sent a key of 768 bits, expected the plan's 512"


def test_a_key_made_to_read_noise_is_refused(small_secret):
    run, _, task = keyed(small_secret)
    bad, context = bad_modulus(512, 8), proven_for(run.terms.plan)
    public, stream = PublicKey.from_bytes(bad.key.to_bytes(), smallest_bits=512), Stream.keyed(b"test")
    forged = with_keys(
        task,
        public_key=public.to_bytes(),
        modulus_proof=prove_modulus(public, context, bad.roots),
        indicator=make_indicator(public, 3, 2, stream, context).to_bytes(public),
    )
    assert "the Paillier modulus is not shown to be free of bad factors" in key_refusal(run, forged)


def test_keys_proven_for_another_run_are_refused(small_secret):
    run, _, task = keyed(small_secret)
    plan = run.terms.plan.model_copy(update={"run": "another"})
    keys = asdict(public_half(small_secret, plan, Stream.keyed(b"test")))
    assert "the Paillier modulus" in key_refusal(run, with_keys(task, **keys))
    assert "the indicator holds" in key_refusal(run, with_keys(task, indicator=keys["indicator"]))


def test_an_altered_proof_of_the_modulus_is_refused(small_secret):
    run, _, task = keyed(small_secret)
    good = task.keys.modulus_proof
    for altered in (b"", good[:-1], good[:-1] + bytes([good[-1] ^ 1]), bytes(len(good)), b"\xff" * len(good)):
        assert "modulus" in key_refusal(run, with_keys(task, modulus_proof=altered))


@pytest.mark.parametrize("bits", [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 0, 0)])
def test_an_indicator_that_keeps_too_little_or_too_much_is_refused(small_secret, bits):
    run, _, task = keyed(small_secret)
    public = small_secret.public
    context = proven_for(run.terms.plan)
    forged = prove_indicator(public, bits, Stream.keyed(b"test"), context).to_bytes(public)
    assert "sent keys that this party does not accept: the indicator" in key_refusal(
        run, with_keys(task, indicator=forged)
    )


def test_an_altered_indicator_is_refused(small_secret):
    run, _, task = keyed(small_secret)
    good = task.keys.indicator
    for altered in (b"", good[:-1], good[:-1] + bytes([good[-1] ^ 1]), bytes(len(good))):
        assert "does not accept" in key_refusal(run, with_keys(task, indicator=altered))


def test_an_altered_share_of_the_group_key_names_its_sender(small_secret):
    run, _, task = keyed(small_secret)
    shares = list(task.keys.contributions)
    shares[2] = shares[2][:-1] + bytes([shares[2][-1] ^ 1])
    text = key_refusal(run, with_keys(task, contributions=tuple(shares)), culprit="party-3")
    assert text.startswith("party-3: its share of the group key does not open: ")


def test_a_share_for_another_recipient_or_sender_does_not_open(small_secret):
    run, _, task = keyed(small_secret)
    own, others = task.keys.contributions, run.tasks()[2].keys.contributions
    key_refusal(run, with_keys(task, contributions=(others[0], *own[1:])), culprit="party-1")
    key_refusal(run, with_keys(task, contributions=(own[2], own[1], own[2])), culprit="party-1")


def test_shares_must_be_complete_and_of_full_length(small_secret):
    run, _, task = keyed(small_secret)
    few = with_keys(task, contributions=task.keys.contributions[:2])
    assert key_refusal(run, few) == "curator: forwarded 2 shares of the group key, not 3"
    member = run.terms.plan.members[1]
    short = seal(member.exchange_key, info_for(run.terms.plan_hash, "group key", "party-1", "party-2"), b"short")
    padded = with_keys(task, contributions=(short, *task.keys.contributions[1:]))
    assert key_refusal(run, padded) == "curator: forwarded a share of the group key that is not 32 bytes long"


def joined(run: Driver, me: int) -> PartyState:
    state = run.parties[me]
    assert state is not None
    return state


def test_parties_agree_on_places_that_the_curator_cannot_know(small_secret):
    run = driver(secret=small_secret).run_to("correlations")
    asked_of = run.tasks()
    sums = [
        selected_sums(joined(run, me).pair_keys, joined(run, me).share, asked_of[me].keys, Stream.keyed(b"test"))
        for me in range(3)
    ]
    assert len({int(own.rerandomisers.bit.number) for own in sums}) == 3  # everybody another place
    assert sum(small_secret.decrypt([own.rerandomisers.bit.number for own in sums])) == run.terms.plan.noise_shares


# update=replace


def replacing(step: str) -> Driver:
    return driver(noise="local", update="replace", insiders=0, epsilon=60).run_to(step)


def test_noise_is_taken_back_where_it_was_added():
    run = replacing("update/2")
    task = run.tasks()[0]
    assert isinstance(task, TakeBack)
    check(run.parties[0], task)
    absent = next(t for t in [(0,), (1,), (2,)] if t not in run.parties[0].noise)
    for tables in ((absent,), (*task.tables, absent), (*task.tables, *task.tables[:1])):
        if tables:
            text = refused(run.parties[0], FailedCheck, task.model_copy(update={"tables": tables}))
            assert text == "curator: asks in 'update/2' for noise that was not in the last update"


def test_noise_is_forgotten_once_it_is_taken_back():
    run = replacing("update/2")
    assert run.parties[0].noise
    run.answer(0, run.tasks()[0])
    assert run.parties[0].noise == {}


def test_only_replace_remembers_noise():
    run = driver(noise="local", epsilon=60).run_to("parameters")
    assert all(state.noise == {} for state in run.parties)


@pytest.mark.parametrize("masked", [(99,), (1, 0), (0, 0)])
def test_masked_tables_are_rising_places_of_asked_ones(masked):
    run = replacing("update/2")
    task = run.tasks()[1].model_copy(update={"masked": masked})
    text = refused(run.parties[1], FailedCheck, task)
    assert text == "curator: names tables to mask in 'update/2' that cannot be masked"


@pytest.mark.parametrize("step", ["correlations", "update/1", "parameters"])
def test_nothing_is_masked_where_nobody_takes_back(step):
    _, state, task = plain(step)
    assert "cannot be masked" in refused(state, FailedCheck, task.model_copy(update={"masked": (0,)}))
    run = replacing("update/1")
    assert "cannot be masked" in refused(
        run.parties[0], FailedCheck, run.tasks()[0].model_copy(update={"masked": (0,)})
    )


# Nothing prints


def test_what_is_kept_does_not_print(small_secret):
    run = driver(secret=small_secret).run_to("initial/1")
    state = run.parties[0]
    secrets = [state.share, state.identity.signing.to_bytes(), state.identity.exchange.to_bytes()]
    secrets.append(state.run_key.to_bytes())
    printed = " ".join(map(repr, (state, state.identity, state.sums, state.sums.pair_keys, run.rows[0])))
    for secret in secrets:
        assert len(secret) == 32
        assert repr(secret) not in printed
        assert secret.hex() not in printed
    assert str(state.sums.rerandomisers.bit.number) not in printed
    assert len(repr(state)) < 200


def test_kept_noise_does_not_print():
    state = replace(replacing("update/2").parties[0], noise={(0, 1): np.array([987654321] * 4)})
    assert "987654321" not in repr(state)
    assert "noise" not in repr(state)
