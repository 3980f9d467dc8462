from time import process_time

import pytest

from protocol.errors import MalformedMessage
from protocol.messages.tasks import MAGIC, Contribution, Invitation, Learn, decode, encode
from tests.support.small_runs import plan_of
from tests.vectors.messages import HASH, MESSAGES, PLAN


def framed(header: bytes, blob: bytes = b"") -> bytes:
    return MAGIC + len(header).to_bytes(4, "big") + header + blob


def refusal(data: bytes) -> str:
    with pytest.raises(MalformedMessage) as refused:
        decode(data, "clinic")
    assert refused.value.culprit == "clinic"
    return str(refused.value)


def test_bytes_begin_with_magic_version_and_length():
    data = encode(MESSAGES["learn"])
    assert (
        data == b'SUBN\x01\x00\x00\x00\x76{"kind":"learn","plan":"' + HASH.encode() + b'","roster":[],"step":"models"}'
    )


def test_the_blob_follows_the_header_as_it_is():
    data = encode(Contribution(plan=HASH, step="s", blob=b"\x00\xff{}"))
    assert data.endswith(b'"step":"s","tags":[]}\x00\xff{}')


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_round_trip(message):
    assert decode(encode(message), "clinic") == message


def test_the_plan_arrives_with_its_hash():
    arrived = decode(encode(MESSAGES["invitation"]), "curator")
    assert isinstance(arrived, Invitation)
    assert arrived.proposal.hash() == PLAN.hash() == arrived.plan


def test_a_plan_with_the_longest_epsilon_arrives():
    longest = "9" * 40 + "." + "7" * 40
    for preset in ("paper", "sound"):
        plan = plan_of(epsilon=longest, preset=preset, rows=(30, 20, 10, 7, 7, 7, 7))
        invitation = Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text="{}")
        assert decode(encode(invitation), "curator").proposal == plan


def test_messages_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        MESSAGES["learn"].step = "parameters"


def test_an_old_side_says_who_has_to_update():
    expected = "clinic: speaks protocol version 3, this side speaks 1: update one of them"
    assert refusal(b"SUBN\x03" + encode(MESSAGES["learn"])[5:]) == expected


def test_a_lying_length_is_named():
    assert (
        refusal(MAGIC + (100).to_bytes(4, "big") + b"{}")
        == "clinic: announced a header of 100 bytes, but 2 bytes follow"
    )


def test_a_header_has_a_largest_size():
    announced = (1 << 26) + 1
    data = MAGIC + announced.to_bytes(4, "big") + bytes(announced)
    assert refusal(data) == f"clinic: announced a header of {announced} bytes, but {announced} bytes follow"


def test_deep_nesting_and_long_numbers_are_refused():
    for header in (b"[" * 10**5, b'{"a":' * 10**5, b"1" * 10**4, b'{"kind":"learn","plan":' + b"9" * 10**5):
        refusal(framed(header))


def test_a_refusal_never_repeats_private_bytes():
    blob = b"PRIVATE" * 10
    kinds = [message for message in MESSAGES.values() if message.kind in ("contribution", "learned")]
    for message in kinds:
        data = encode(message.model_copy(update={"blob": blob}))
        for broken in (data[:9] + b"X" + data[10:], data.replace(b'"plan"', b'"plat"'), data[:5] + bytes(4) + data[9:]):
            assert "PRIVATE" not in refusal(broken)


def test_a_refusal_is_short():
    flood = b'{"kind":"' + b"x" * 10**6 + b'"}'
    assert len(refusal(framed(flood))) < 500
    unknown = b'{"kind":"learn","' + b"y" * 10**6 + b'":1}'
    assert len(refusal(framed(unknown))) < 500


def test_the_blob_does_not_print():
    assert "PRIVATE" not in repr(Contribution(plan=HASH, step="s", blob=b"PRIVATE"))
    assert repr(Learn(plan=HASH, step="s")).startswith("Learn(")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (b'{"kind":"count","tables":[' + b",".join([b'"a"'] * 1_000_000) + b"]}", "count."),
        (b'{"kind":"count","tables":[' + b",".join([b"[1,true]"] * 200_000) + b"]}", "count."),
        (b'{"kind":"count",' + b",".join(b'"%x":0' % number for number in range(300_000)) + b"}", "262,144 keys"),
        (b'{"kind":"learn","plan":' + b"[" * 1_000_000 + b"}", "nested too deeply"),
    ],
    ids=["texts", "tables", "keys", "brackets"],
)
def test_a_message_full_of_mistakes_takes_no_time(header, words):
    """A list of all mistakes of 8 MB took 10 s and 2.3 GB."""
    data = framed(header)
    began = process_time()
    assert words in refusal(data)
    assert process_time() - began < 2
