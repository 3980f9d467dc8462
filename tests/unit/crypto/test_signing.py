import pytest

from crypto.errors import BrokenSeal, MalformedKey
from crypto.signing import SigningKey, check_public, fingerprint, sign, verify

KEY = SigningKey.from_bytes(bytes(range(32)))
SIGNATURE = sign(KEY, b"plan", b"message")


def test_a_signature_verifies():
    assert len(SIGNATURE) == 64
    verify(KEY.public, b"plan", b"message", SIGNATURE)


def test_signing_twice_gives_the_same_bytes():
    assert sign(KEY, b"plan", b"message") == SIGNATURE


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (b"receipt", b"message"),
        (b"plan", b"messagf"),
        (b"pla", b"nmessage"),
        (b"planm", b"essage"),
        (b"", b"planmessage"),
    ],
)
def test_a_signature_means_nothing_for_another_context_or_message(context, message):
    with pytest.raises(BrokenSeal, match="not made with this key for this message"):
        verify(KEY.public, context, message, SIGNATURE)


@pytest.mark.parametrize("position", [0, 31, 32, 63])
def test_an_altered_signature_is_refused(position):
    altered = bytearray(SIGNATURE)
    altered[position] ^= 1
    with pytest.raises(BrokenSeal):
        verify(KEY.public, b"plan", b"message", bytes(altered))


@pytest.mark.parametrize("signature", [b"", SIGNATURE[:63], SIGNATURE + b"\0"])
def test_a_signature_of_another_length_is_refused(signature):
    with pytest.raises(BrokenSeal):
        verify(KEY.public, b"plan", b"message", signature)


def test_another_key_did_not_sign():
    with pytest.raises(BrokenSeal):
        verify(SigningKey.generate().public, b"plan", b"message", SIGNATURE)


def test_keys_of_another_length_are_refused():
    for length in (0, 31, 33):
        with pytest.raises(MalformedKey, match=f"32 bytes, but this key has {length}"):
            verify(bytes(length), b"plan", b"message", SIGNATURE)
        with pytest.raises(MalformedKey):
            SigningKey.from_bytes(bytes(length))


def test_the_public_key_is_that_of_rfc_8032():
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert SigningKey.from_bytes(secret).public == public


def test_a_generated_key_is_kept_by_its_bytes_and_does_not_print():
    key = SigningKey.generate()
    assert SigningKey.from_bytes(key.to_bytes()).public == key.public
    assert key.to_bytes().hex() not in repr(key)


def test_a_fingerprint_is_eight_groups_of_four_digits():
    groups = fingerprint(KEY.public).split(" ")
    assert [len(group) for group in groups] == [4] * 8
    assert fingerprint(KEY.public) != fingerprint(SigningKey.generate().public)


def test_a_key_of_small_order_is_refused() -> None:
    """Eight times such a point is the neutral element, so that one signature fits every eighth message or more."""
    p, order_8 = 2**255 - 19, 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
    heights = [0, 1, p - 1, order_8, p - order_8, p, p + 1]  # the last two spell 0 and 1 in another way
    for height in heights:
        for sign_bit in (0, 1 << 255):
            with pytest.raises(MalformedKey, match="prove nothing"):
                check_public((height | sign_bit).to_bytes(32, "little"))
    check_public(SigningKey.generate().public)


def test_what_a_key_of_small_order_would_accept() -> None:
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32)  # R is the neutral element, S is 0
    verify(neutral, b"any context", b"any message", forged)
