"""Messages lead back to where they came from, and no bytes whatever make `decode` fail in another way."""

import json
from fractions import Fraction

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from protocol.errors import MalformedMessage
from protocol.messages.tasks import (
    MAGIC,
    Acceptance,
    Contribution,
    Count,
    Invitation,
    Joined,
    Keys,
    Learn,
    Learned,
    Place,
    Placed,
    Refusal,
    TakeBack,
    decode,
    encode,
)
from protocol.plan.plan import Member, Plan
from protocol.text import printable
from tests.support.effort import examples
from tests.vectors.messages import MESSAGES

SETTINGS = settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
GOOD = [encode(message) for message in MESSAGES.values()]

hashes = st.text("0123456789abcdef", min_size=64, max_size=64)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
names = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)
names = names.filter(lambda name: printable(name) == name)
few_bytes = st.binary(max_size=20)
indices = st.integers(0, (1 << 20) - 1)
variables = st.lists(indices, max_size=4).map(tuple)
tables = st.lists(variables, max_size=4).map(tuple)
families = st.lists(st.tuples(indices, variables), max_size=4).map(tuple)
fractions = st.fractions(-(10**6), 10**6, max_denominator=10**12)
key = st.binary(min_size=32, max_size=32)
members = st.builds(Member, name=names, rows=st.integers(1, 2 * 10**9), signing_key=key, exchange_key=key)
plans = st.builds(
    Plan,
    version=st.just(1),
    run=names,
    picks=st.lists(st.integers(0, 100), max_size=4).map(tuple),
    insiders=st.integers(0, 100),
    rounds=st.integers(1, 100),
    rows=st.integers(1, 10**12),
    schema_hash=hashes,
    members=st.lists(members, max_size=3).map(tuple),
    epsilon=fractions,
    split=st.lists(fractions, max_size=4).map(tuple),
    theta=fractions,
    frontier_theta=fractions,
    degree=st.none() | st.integers(0, 100),
    key_bits=st.integers(32, 2048).map(lambda octets: 8 * octets),
)
common = {"plan": hashes, "step": names}
several = st.lists(few_bytes, max_size=3).map(tuple)
run_keys = st.binary(min_size=32, max_size=32)
rosters = st.lists(st.builds(Joined, exchange_key=run_keys, signature=few_bytes), max_size=3).map(tuple)
keys = st.builds(Keys, public_key=few_bytes, modulus_proof=few_bytes, indicator=few_bytes, contributions=several)
messages = st.one_of(
    st.builds(Invitation, **common, proposal=plans, schema_text=texts, blob=st.just(b"")),
    st.builds(
        Acceptance, **common, exchange_key=run_keys, signature=few_bytes, contributions=several, blob=st.just(b"")
    ),
    st.builds(
        Count,
        **common,
        roster=rosters,
        tables=tables,
        keys=st.none() | keys,
        masked=st.lists(indices).map(tuple),
        blob=st.just(b""),
    ),
    st.builds(TakeBack, **common, tables=tables, blob=st.just(b"")),
    st.builds(Contribution, **common, tags=st.lists(st.binary(max_size=16), max_size=3).map(tuple), blob=few_bytes),
    st.builds(Place, **common, families=families, blob=st.just(b"")),
    st.builds(Placed, **common, families=families, blob=st.just(b"")),
    st.builds(Learn, **common, blob=st.just(b"")),
    st.builds(Learned, **common, families=families, blob=few_bytes),
    st.builds(Refusal, **common, reason=texts, culprit=st.just("") | names, blob=st.just(b"")),
)


def is_sound(data: bytes) -> bool:
    """Whether `decode` refuses these bytes properly, or takes them as the message's only spelling."""
    try:
        message = decode(data, "clinic")
    except MalformedMessage as error:
        return is_proper(error)
    return encode(message) == data


def is_refused(data: bytes) -> bool:
    try:
        decode(data, "clinic")
    except MalformedMessage as error:
        return is_proper(error)
    return False


def is_proper(error: MalformedMessage) -> bool:
    return error.culprit == "clinic" and len(str(error)) < 500


@given(messages)
@SETTINGS
def test_what_is_sent_arrives(message):
    assert decode(encode(message), "clinic") == message


@given(messages, messages)
@SETTINGS
def test_different_messages_have_different_bytes(one, other):
    assert (encode(one) == encode(other)) == (one == other)


@given(st.binary(max_size=200))
@example(b"")
@example(MAGIC)
@SETTINGS
def test_arbitrary_bytes_are_refused(data):
    assert is_refused(data)


@given(st.binary(max_size=200), st.binary(max_size=10))
@SETTINGS
def test_arbitrary_headers_are_refused(header, blob):
    assert is_refused(MAGIC + len(header).to_bytes(4, "big") + header + blob)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["kind", "plan", "step", "tables", "blob", "families", "x"]), json_values))
@SETTINGS
def test_arbitrary_json_is_refused_or_canonical(header):
    text = json.dumps(header).encode()
    assert is_sound(MAGIC + len(text).to_bytes(4, "big") + text)


@given(st.sampled_from(GOOD), st.integers(0, 5000), st.integers(1, 255))
@SETTINGS
def test_one_flipped_byte_is_refused_or_another_message(data, place, flip):
    place %= len(data)
    assert is_sound(data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :])


@given(st.sampled_from(GOOD), st.integers(0, 5000), st.binary(max_size=8), st.integers(0, 8))
@SETTINGS
def test_bytes_taken_out_and_put_in_are_refused_or_another_message(data, place, inserted, removed):
    place %= len(data)
    assert is_sound(data[:place] + inserted + data[place + removed :])


def test_no_number_of_a_budget_is_ever_a_float():
    for value in (0.5, 1e300, float(Fraction(1, 3))):
        header = json.loads(encode(MESSAGES["invitation"])[len(MAGIC) + 4 :])
        header["proposal"]["epsilon"] = value
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert is_refused(MAGIC + len(text).to_bytes(4, "big") + text)
