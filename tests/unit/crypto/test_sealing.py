import pytest

from crypto.errors import BrokenSeal, MalformedKey
from crypto.sealing import ExchangeKey, check_public, info_for, open_sealed, seal

BOB = ExchangeKey.from_bytes(bytes(range(32)))
PLACE = ("run 7", "group-key", "alice", "bob")
INFO = info_for(*PLACE)


def test_what_is_sealed_opens():
    for plaintext in (b"", b"a share of the group key", bytes(100_000)):
        assert open_sealed(BOB.to_bytes(), INFO, seal(BOB.public, INFO, plaintext)) == plaintext


def test_a_seal_costs_48_bytes_and_is_never_the_same_twice():
    one, other = (seal(BOB.public, INFO, b"12345") for _ in range(2))
    assert len(one) == len(other) == 5 + 32 + 16
    assert one[:32] != other[:32]
    assert one[32:] != other[32:]


@pytest.mark.parametrize("part", range(4))
def test_a_seal_is_bound_to_run_step_sender_and_recipient(part):
    elsewhere = [text + "'" if index == part else text for index, text in enumerate(PLACE)]
    sealed = seal(BOB.public, INFO, b"secret")
    with pytest.raises(BrokenSeal, match="altered, or sealed for another recipient or place"):
        open_sealed(BOB.to_bytes(), info_for(*elsewhere), sealed)


def test_places_whose_names_join_alike_are_different():
    assert info_for("ab", "c", "d", "e") != info_for("a", "bc", "d", "e")
    assert info_for("", "a", "d", "e") != info_for("a", "", "d", "e")
    assert info_for("r", "s", "é", "e") == b"dp-subn v1 seal" + b"".join(
        [b"\0\0\0\1r", b"\0\0\0\1s", b"\0\0\0\2\xc3\xa9", b"\0\0\0\1e"]
    )


def test_another_recipient_cannot_open():
    with pytest.raises(BrokenSeal):
        open_sealed(ExchangeKey.generate().to_bytes(), INFO, seal(BOB.public, INFO, b"secret"))


@pytest.mark.parametrize("position", [0, 31, 32, 40, -1])
def test_an_altered_seal_does_not_open(position):
    sealed = bytearray(seal(BOB.public, INFO, b"a secret of some length"))
    sealed[position] ^= 1
    with pytest.raises(BrokenSeal):
        open_sealed(BOB.to_bytes(), INFO, bytes(sealed))


@pytest.mark.parametrize("length", [0, 31, 32, 47, 52])
def test_a_shortened_seal_does_not_open(length):
    with pytest.raises(BrokenSeal):
        open_sealed(BOB.to_bytes(), INFO, seal(BOB.public, INFO, b"12345")[:length])


@pytest.mark.parametrize("point", [bytes(32), b"\1" + bytes(31)])
def test_a_sender_key_of_small_order_does_not_open(point):
    with pytest.raises(BrokenSeal):
        open_sealed(BOB.to_bytes(), INFO, point + bytes(21))


@pytest.mark.parametrize("point", [bytes(32), b"\1" + bytes(31)])
def test_a_recipient_key_of_small_order_is_refused(point):
    with pytest.raises(MalformedKey, match="small order"):
        seal(point, INFO, b"secret")


def test_keys_of_another_length_are_refused():
    for length in (0, 31, 33):
        with pytest.raises(MalformedKey, match=f"32 bytes, but this key has {length}"):
            seal(bytes(length), INFO, b"")
        with pytest.raises(MalformedKey):
            open_sealed(bytes(length), INFO, b"")
        with pytest.raises(MalformedKey):
            ExchangeKey.from_bytes(bytes(length))


def test_the_public_key_is_that_of_rfc_7748():
    secret = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    public = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert ExchangeKey.from_bytes(secret).public == public


def test_generated_keys_differ_and_do_not_print():
    one, other = ExchangeKey.generate(), ExchangeKey.generate()
    assert one.to_bytes() != other.to_bytes()
    assert one.to_bytes().hex() not in repr(one)
    assert ExchangeKey.from_bytes(one.to_bytes()).public == one.public


def test_both_ends_agree():
    alice = ExchangeKey.generate()
    assert alice.agree(BOB.public) == BOB.agree(alice.public)


def test_agreement_by_the_vector_of_rfc_7748():
    scalar = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    agreed = ExchangeKey.from_bytes(scalar).agree(point)
    assert agreed.hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"


@pytest.mark.parametrize(
    ("public", "told"),
    [(bytes(32), "small order"), (b"\x01" + bytes(31), "small order"), (bytes(31), "32 bytes")],
    ids=["zero", "order 4", "short"],
)
def test_an_improper_public_key_is_refused(public, told):
    for refused in (BOB.agree, check_public):
        with pytest.raises(MalformedKey, match=told):
            refused(public)
