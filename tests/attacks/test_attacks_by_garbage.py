"""A party that sends garbage: it ends the run, and it is named, or the reason says honestly that nothing tells who."""

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from crypto.masking import TAG_BYTES
from crypto.paillier.public import ciphertexts_to_bytes, encrypt, random_unit
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from crypto.sealing import ExchangeKey, info_for, seal
from protocol.errors import PARTIES, FailedCheck
from protocol.messages.tasks import Acceptance, Contribution, Count, Reply
from protocol.run.curator import receive
from protocol.secure_sum.blame import at_fault, disagreeing, in_words
from protocol.stages import sum_pass
from tests.support.small_runs import BITS, Driver, identity, random_codes, terms_of

ROWS = (40, 30, 20, 10)
UNNAMED = "which one cannot be told without opening the contributions of single parties"
Lie = Callable[[Driver, int, Count, Contribution], Contribution]


def garbage(run: Driver, blob: bytes) -> bytes:
    """As many bytes, of the form that a contribution has."""
    if not run.terms.plan.uses_paillier:
        return Stream.system().take(len(blob))
    assert run.state.keys is not None
    key = run.opening.public
    count = len(blob) // key.ciphertext_bytes
    stream = Stream.system()
    drawn = [encrypt(key, stream.below(int(key.n)), random_unit(key, stream)) for _ in range(count)]
    return ciphertexts_to_bytes(key, drawn)


def numbers_alone(run: Driver, _party: int, _task: Count, honest: Contribution) -> Contribution:
    return honest.model_copy(update={"blob": garbage(run, honest.blob)})


def numbers_and_tags(run: Driver, party: int, _task: Count, honest: Contribution) -> Contribution:
    tags = tuple(b"" if peer == party else Stream.system().take(TAG_BYTES) for peer in range(len(ROWS)))
    return honest.model_copy(update={"blob": garbage(run, honest.blob), "tags": tags})


def masks_of_another_step(run: Driver, party: int, task: Count, _honest: Contribution) -> Contribution:
    """Say, by a program that names steps, tables or noise in another way."""
    with patch.object(sum_pass, "asked", lambda *_: b"another step"):
        return answered(run, party, task)


def masks_of_another_key(run: Driver, party: int, task: Count, _honest: Contribution) -> Contribution:
    """Say, from a copy of the home that made a key of the run of its own."""
    state = run.parties[party]
    assert state is not None
    run.parties[party] = replace(state, run_key=ExchangeKey.from_bytes(Stream.system().take(32)))
    return answered(run, party, task)


def answered(run: Driver, party: int, task: Count) -> Contribution:
    reply = run.answer(party, task)
    assert isinstance(reply, Contribution)
    return reply


LIES: list[Lie] = [numbers_alone, numbers_and_tags, masks_of_another_step, masks_of_another_key]


def verdict(run: Driver, liar: int, lie: Lie) -> FailedCheck:
    """What the curator says of the step in which one party lies."""
    replies: dict[int, Reply] = {}
    for party, task in run.tasks().items():
        assert isinstance(task, Count)
        before = run.parties[party]
        honest = answered(run, party, task)
        if party == liar:
            run.parties[party] = before
            honest = lie(run, party, task, honest)
        replies[party] = honest
    last = len(ROWS) - 1
    for party in range(last):
        run.receive(party, replies[party])
    with pytest.raises(FailedCheck) as refused:
        run.receive(last, replies[last])
    return refused.value


def at_the_first_pass(noise: str, secret: SecretKey) -> Driver:
    split = (0.5, 0, 0, 0.5)
    terms = terms_of(BITS, ROWS, noise=noise, split=tuple(map(str, split)))
    return Driver(terms, random_codes(BITS, ROWS), secret).run_to(terms.steps[1].name)


@pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
def test_ten_of_ten_are_named_or_the_reason_says_why_not(noise: str, small_secret: SecretKey) -> None:
    named = 0
    for number in range(10):
        liar, lie = number % len(ROWS), LIES[number % len(LIES)]
        found = verdict(at_the_first_pass(noise, small_secret), liar, lie)
        if lie is numbers_alone:
            assert (found.culprit, UNNAMED in str(found)) == (PARTIES, True)
        else:
            assert found.culprit == f"party-{liar + 1}", (lie.__name__, found)
            assert f"party-{liar + 1} made other masks than" in str(found)
            named += 1
    assert named == 7


@pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
def test_who_lies_about_one_pair_alone_is_named_with_the_other(noise: str, small_secret: SecretKey) -> None:
    def one_tag(run: Driver, party: int, task: Count, honest: Contribution) -> Contribution:
        tags = tuple(bytes(TAG_BYTES) if peer == 3 else tag for peer, tag in enumerate(honest.tags))
        return numbers_alone(run, party, task, honest).model_copy(update={"tags": tags})

    found = verdict(at_the_first_pass(noise, small_secret), 1, one_tag)
    assert found.culprit == "party-2, party-4"
    assert "one of the two is at fault" in str(found)


def test_tags_are_equal_at_both_ends_and_differ_everywhere_else(small_secret: SecretKey) -> None:
    """Across pairs, steps, runs and group keys: nobody learns from a tag that two things are the same."""
    seen: list[bytes] = []
    for noise in ("selected", "distributed"):
        run = at_the_first_pass(noise, small_secret)
        for _ in range(2):
            replies = run.replies()
            tags = {party: reply.tags for party, reply in replies.items()}  # type: ignore[union-attr]
            assert disagreeing(tags) == []
            seen += [tags[one][other] for one in tags for other in tags if one < other]
            for party, reply in replies.items():
                run.receive(party, reply)
    assert len(seen) == len(set(seen)) == 24


def test_a_contribution_without_tags_is_refused_as_it_arrives(small_secret: SecretKey) -> None:
    run = at_the_first_pass("distributed", small_secret)
    reply = run.answer(2, run.tasks()[2])
    for tags in ((), (b"x" * TAG_BYTES,) * 4, (b"x", b"x", b"", b"x"), reply.tags[:-1]):  # type: ignore[union-attr]
        with pytest.raises(FailedCheck, match="party-3: sent no tags for 'correlations' that fit 4 parties"):
            receive(run.state, 2, reply.model_copy(update={"tags": tags}), run.opening)


class TestWhoIsNamed:
    def test_a_party_that_explains_every_pair(self) -> None:
        assert at_fault([(0, 2), (1, 2), (2, 3)]) == (2,)
        assert at_fault([(0, 2), (1, 2)]) == (2,)

    def test_both_ends_of_a_single_pair(self) -> None:
        assert at_fault([(1, 3)]) == (1, 3)

    def test_all_that_are_involved_if_no_party_explains_all(self) -> None:
        assert at_fault([(0, 1), (2, 3)]) == (0, 1, 2, 3)
        assert at_fault([(0, 1), (1, 2), (0, 2)]) == (0, 1, 2)
        assert "no single party explains all" in in_words("abcd", [(0, 1), (2, 3)])

    def test_nobody_if_all_agree(self) -> None:
        assert at_fault([]) == ()
        assert UNNAMED in in_words("abcd", [])


# Shares of the group key


def accepted(run: Driver, party: int, change: Callable[[bytes], bytes]) -> Acceptance:
    """A party's acceptance with other shares of the group key for everybody."""
    reply = run.answer(party, run.tasks()[party])
    assert isinstance(reply, Acceptance)
    return reply.model_copy(update={"contributions": tuple(map(change, reply.contributions))})


@pytest.mark.parametrize(
    "change",
    [lambda share: share[:-1], lambda share: share + b"x", lambda share: bytes(len(share)), lambda _share: b""],
    ids=["short", "long", "sealed with a key of small order", "nothing"],
)
def test_shares_of_the_group_key_that_nobody_can_open_name_their_sender(
    change: Callable[[bytes], bytes], small_secret: SecretKey
) -> None:
    run = Driver(terms_of(BITS, ROWS), random_codes(BITS, ROWS), small_secret)
    forged = accepted(run, 1, lambda share: change(share) if share else b"")
    with pytest.raises(FailedCheck, match="party-2: sent a share of the group key that nobody can open"):
        receive(run.state, 1, forged, run.opening)


def with_shares(secret: SecretKey, change: Callable[[Driver, int, bytes], bytes]) -> Driver:
    """A run in which the second party has sealed something else for the others."""
    run = Driver(terms_of(BITS, ROWS), random_codes(BITS, ROWS), secret)
    replies = run.replies()
    second = replies[1]
    assert isinstance(second, Acceptance)
    shares = tuple(change(run, peer, share) if share else b"" for peer, share in enumerate(second.contributions))
    replies[1] = second.model_copy(update={"contributions": shares})
    for party, reply in replies.items():
        run.receive(party, reply)
    return run


def test_garbage_of_the_right_size_is_found_by_its_recipient(small_secret: SecretKey) -> None:
    run = with_shares(small_secret, lambda _run, _peer, share: share[:32] + bytes(48))
    with pytest.raises(FailedCheck, match="its share of the group key does not open") as refused:
        run.answer(0, run.tasks()[0])
    assert refused.value.culprit == "party-2"


def test_a_sealed_share_of_another_length_is_its_senders_fault(small_secret: SecretKey) -> None:
    def short(run: Driver, peer: int, _share: bytes) -> bytes:
        info = info_for(run.terms.plan_hash, "group key", "party-2", f"party-{peer + 1}")
        return seal(identity(peer).exchange.public, info, b"short")

    with pytest.raises(FailedCheck, match="nobody can open"):
        with_shares(small_secret, short)


# Counts that a party sends by itself


@pytest.mark.parametrize("value", [2**62, -(2**62), 10_000])
def test_own_tables_out_of_all_range_name_their_sender(value: int) -> None:
    wishes = {"update": "accumulate", "noise": "local"}
    run = Driver(terms_of(BITS, ROWS, 8, **wishes), random_codes(BITS, ROWS)).run_to("update/2")
    reply = run.answer(1, run.tasks()[1])
    words = np.frombuffer(reply.blob, dtype="<i8").copy()
    words[0] = value
    with pytest.raises(FailedCheck, match="party-2: sent counts for 'update/2' that 30 rows with noise cannot have"):
        receive(run.state, 1, reply.model_copy(update={"blob": words.tobytes()}), run.opening)


def test_a_handover_that_does_not_add_up_names_the_two_parties() -> None:
    wishes = {"preset": "paper", "encoding": "native", "noise": "local", "insiders": 0, "update": "replace"}
    run = Driver(terms_of(BITS, ROWS, 50, **wishes), random_codes(BITS, ROWS)).run_to("update/2")
    replies = run.replies()
    taken = replies[0]
    assert taken.blob, "nothing goes on from the first update"
    replies[0] = taken.model_copy(update={"blob": Stream.system().take(len(taken.blob))})
    run.receive(0, replies[0])
    with pytest.raises(FailedCheck, match="cannot have") as refused:
        run.receive(1, replies[1])
    assert refused.value.culprit == "party-1, party-2"
