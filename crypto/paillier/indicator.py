"""The encrypted indicator of the parties whose noise is kept; nobody knows which parties these are.

It does not know the secret key: curator and parties both need only the public key.

The curator encrypts a vector with `shares` ones, and the parties permute the places without telling the curator. The
curator proves that each ciphertext holds 0 or 1 (Cramer, Damgard and Schoenmakers' proof that one of two statements
holds, made non-interactive by Fiat and Shamir's hash). It also opens the product of all ciphertexts, which shows the
number of ones. The product alone is not enough: (2, 0, 0) has sum 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import gmpy2
from gmpy2 import mpz

from crypto.errors import MalformedCiphertext, WrongProof
from crypto.paillier.public import PublicKey, check_ciphertexts, ciphertexts_to_bytes, encrypt, random_unit
from crypto.randomness import Stream

_CHALLENGE_BYTES = 16  # challenges stay below every prime factor of n, as the proof's soundness requires
_CHALLENGES = 1 << (8 * _CHALLENGE_BYTES)


@dataclass(frozen=True)
class BitProof:
    """Proof that a ciphertext holds 0 or 1: commitments and answers for both, and the part of the challenge for 0."""

    commitments: tuple[mpz, mpz]
    answers: tuple[mpz, mpz]
    challenge_for_zero: int


@dataclass(frozen=True)
class Indicator:
    """The curator's message to the parties: ciphertexts, the product of their randomness, and a proof for each."""

    ciphertexts: tuple[mpz, ...]
    opening: mpz
    proofs: tuple[BitProof, ...]

    def to_bytes(self, key: PublicKey) -> bytes:
        parts = [ciphertexts_to_bytes(key, self.ciphertexts), _number(key, self.opening)]
        for proof in self.proofs:
            parts.append(ciphertexts_to_bytes(key, proof.commitments))
            parts += [_number(key, answer) for answer in proof.answers]
            parts.append(proof.challenge_for_zero.to_bytes(_CHALLENGE_BYTES, "big"))
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, key: PublicKey, data: bytes, parties: int) -> "Indicator":
        number = key.ciphertext_bytes // 2
        proof_lengths = [2 * number, 2 * number, number, number, _CHALLENGE_BYTES]
        lengths = [2 * number] * parties + [number] + proof_lengths * parties
        if len(data) != sum(lengths):
            raise MalformedCiphertext(
                f"the indicator has {len(data)} bytes; one for {parties} parties has {sum(lengths)}; stop the run"
            )
        values = list(_split(data, lengths))
        proofs = (values[start : start + 5] for start in range(parties + 1, len(values), 5))
        indicator = cls(
            tuple(values[:parties]),
            values[parties],
            tuple(BitProof((a, b), (x, y), int(e)) for a, b, x, y, e in proofs),
        )
        _check_numbers(key, indicator)
        return indicator

    def digest(self, key: PublicKey) -> bytes:
        """Hash the indicator for the masks to depend on: contributions under different indicators cannot be summed."""
        return sha256(key.to_bytes() + self.to_bytes(key)).digest()


def make_indicator(key: PublicKey, parties: int, shares: int, stream: Stream) -> Indicator:
    """Encrypt `shares` ones at random places among `parties` and prove it."""
    if not 1 <= shares <= parties:
        raise ValueError(f"{shares} of {parties} shares of noise cannot be kept; keep 1 to {parties}")
    chosen = set(stream.permutation(parties)[:shares])
    return prove_indicator(key, [int(place in chosen) for place in range(parties)], stream)


def prove_indicator(key: PublicKey, bits: Sequence[int], stream: Stream) -> Indicator:
    """Encrypt the given bits and prove that they are bits."""
    randomness = [random_unit(key, stream) for _ in bits]
    ciphertexts = [encrypt(key, bit, r) for bit, r in zip(bits, randomness, strict=True)]
    drafts = [_Draft(key, c, bit, stream) for c, bit in zip(ciphertexts, bits, strict=True)]
    challenge = _challenge(key, ciphertexts, [draft.commitments for draft in drafts])
    proofs = tuple(draft.finish(key, challenge, r) for draft, r in zip(drafts, randomness, strict=True))
    opening = mpz(1)
    for r in randomness:
        opening = opening * r % key.n
    return Indicator(tuple(ciphertexts), opening, proofs)


def check_indicator(key: PublicKey, indicator: Indicator, shares: int) -> None:
    """Raise `WrongProof` unless every ciphertext holds 0 or 1 and exactly `shares` of them hold 1."""
    _check_numbers(key, indicator)
    if not opens_to(key, indicator.ciphertexts, indicator.opening, shares):
        raise WrongProof(f"the indicator does not keep exactly {shares} shares of noise; stop the run")
    if not _holds_bits(key, indicator):
        raise WrongProof("the indicator holds other numbers than zeros and ones; stop the run")


def opens_to(key: PublicKey, ciphertexts: Sequence[mpz], opening: mpz, shares: int) -> bool:
    """Whether the product of the ciphertexts is Enc(shares; opening)."""
    product = mpz(1)
    for ciphertext in ciphertexts:
        product = product * ciphertext % key.n_squared
    return bool(product == encrypt(key, shares, opening))


def hidden_permutation(group_key: bytes, parties: int) -> list[int]:
    """Derive the places of the parties' ciphertexts: entry k is the place of party k.

    Holders of the group key know the permutation; the curator does not.
    """
    return Stream.keyed(group_key, b"hidden permutation").permutation(parties)


class _Draft:
    """A proof before its challenge: the false statement's answer is simulated, the true statement's is committed to."""

    def __init__(self, key: PublicKey, ciphertext: mpz, bit: int, stream: Stream) -> None:
        self._bit = bit
        self._simulated = stream.below(_CHALLENGES)
        self._answer, self._nonce = random_unit(key, stream), random_unit(key, stream)
        power = gmpy2.powmod(_residue(key, ciphertext, 1 - bit), self._simulated, key.n_squared)
        false = encrypt(key, 0, self._answer) * gmpy2.invert(power, key.n_squared) % key.n_squared
        true = encrypt(key, 0, self._nonce)
        self.commitments = (true, false) if bit == 0 else (false, true)

    def finish(self, key: PublicKey, challenge: int, randomness: mpz) -> BitProof:
        own = (challenge - self._simulated) % _CHALLENGES
        answer = self._nonce * gmpy2.powmod(randomness, own, key.n) % key.n
        if self._bit == 0:
            return BitProof(self.commitments, (answer, self._answer), own)
        return BitProof(self.commitments, (self._answer, answer), self._simulated)


def _holds_bits(key: PublicKey, indicator: Indicator) -> bool:
    """Whether answer^n = commitment * residue^challenge for every statement, checked as one equation of random powers.

    Soundness: consider the quotient by the n-th powers, a cyclic group of order n. A wrong equation is not zero there.
    Random coefficients of 128 bits take the sum of all equations to zero with probability at most 2^-128, since n has
    no small factor. Equality up to n-th powers is enough, because the claim is only that a residue is an n-th power.
    """
    challenge = _challenge(key, indicator.ciphertexts, [proof.commitments for proof in indicator.proofs])
    coefficients = Stream.keyed(indicator.digest(key), b"batch of proofs")
    answers, claims = mpz(1), mpz(1)
    for ciphertext, proof in zip(indicator.ciphertexts, indicator.proofs, strict=True):
        parts = (proof.challenge_for_zero, (challenge - proof.challenge_for_zero) % _CHALLENGES)
        for bit in (0, 1):
            coefficient = coefficients.bits(8 * _CHALLENGE_BYTES)
            residue = gmpy2.powmod(_residue(key, ciphertext, bit), coefficient * parts[bit], key.n_squared)
            commitment = gmpy2.powmod(proof.commitments[bit], coefficient, key.n_squared)
            claims = claims * residue * commitment % key.n_squared
            answers = answers * gmpy2.powmod(proof.answers[bit], coefficient, key.n) % key.n
    return bool(encrypt(key, 0, answers) == claims)


def _residue(key: PublicKey, ciphertext: mpz, bit: int) -> mpz:
    """Compute ciphertext / (1+n)^bit, an n-th power exactly if the ciphertext holds `bit`; 1 / (1+n) is 1 - n."""
    return ciphertext * (1 - bit * key.n) % key.n_squared


def _challenge(key: PublicKey, ciphertexts: Sequence[mpz], commitments: Sequence[tuple[mpz, mpz]]) -> int:
    """Fiat and Shamir's challenge: a hash of everything that the prover had fixed before."""
    fixed = [key.to_bytes(), len(ciphertexts).to_bytes(4, "big"), ciphertexts_to_bytes(key, ciphertexts)]
    fixed += [ciphertexts_to_bytes(key, pair) for pair in commitments]
    digest = sha256(b"dp-subn v1 indicator " + b"".join(fixed)).digest()
    return int.from_bytes(digest[:_CHALLENGE_BYTES], "big")


def _check_numbers(key: PublicKey, indicator: Indicator) -> None:
    """Check that every number from outside is a unit in its range."""
    if len(indicator.proofs) != len(indicator.ciphertexts):
        raise WrongProof("the indicator does not have one proof for each ciphertext; stop the run")
    commitments = [commitment for proof in indicator.proofs for commitment in proof.commitments]
    check_ciphertexts(key, [*indicator.ciphertexts, *commitments])
    answers = [answer for proof in indicator.proofs for answer in proof.answers]
    if any(not 0 < number < key.n or gmpy2.gcd(number, key.n) != 1 for number in [indicator.opening, *answers]):
        raise WrongProof("the indicator's proof holds a number that no honest prover sends; stop the run")


def _split(data: bytes, lengths: Sequence[int]) -> Iterator[mpz]:
    start = 0
    for length in lengths:
        yield mpz.from_bytes(data[start : start + length], "big")
        start += length


def _number(key: PublicKey, value: mpz) -> bytes:
    return bytes(value.to_bytes(key.ciphertext_bytes // 2, "big"))
