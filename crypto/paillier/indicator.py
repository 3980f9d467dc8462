"""The encrypted indicator of the parties whose noise is kept; nobody knows which parties these are.

It does not know the secret key: curator and parties both need only the public key.

The curator encrypts a vector with `shares` ones. It proves that each ciphertext holds 0 or 1 (Cramer, Damgard
and Schoenmakers' proof that one of two statements holds, made non-interactive by Fiat and Shamir's hash) and
opens the product of all, which shows how many ones there are. Neither alone is enough: (2, 0, 0) has sum 2.
A challenge is below every prime factor that n may have; so short a one is guessed, and the proof is repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import gmpy2
from gmpy2 import mpz

from crypto.errors import MalformedCiphertext, WrongProof
from crypto.paillier.bucket_powers import product_of_powers
from crypto.paillier.public import (
    STATISTICAL_BITS,
    TRIAL_DIVISION,
    PublicKey,
    are_units,
    check_ciphertexts,
    ciphertexts_to_bytes,
    encrypt,
    random_unit,
)
from crypto.randomness import Stream

_CHALLENGES = TRIAL_DIVISION  # no two differ by a multiple of a prime factor of n, as the proof's soundness asks
_CHALLENGE_BITS = _CHALLENGES.bit_length() - 1
_CHALLENGE_BYTES = _CHALLENGE_BITS // 8
REPETITIONS = -(-STATISTICAL_BITS // _CHALLENGE_BITS)
_PRODUCTS = 3  # a false proof passes these with probability 2^-48; whoever tries one is found out in the act

Powers = Callable[[Sequence[mpz]], list[mpz]]  # the n-th powers modulo n^2 of numbers modulo n


@dataclass(frozen=True)
class BitProof:
    """Proof that a ciphertext holds 0 or 1: commitments and answers for both, and the part of the challenge for 0."""

    commitments: tuple[mpz, mpz]
    answers: tuple[mpz, mpz]
    challenge_for_zero: int


@dataclass(frozen=True)
class Indicator:
    """The curator's message: ciphertexts, the product of their randomness, and each ciphertext's proofs."""

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
        lengths = [2 * number] * parties + [number] + proof_lengths * (parties * REPETITIONS)
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


def make_indicator(
    key: PublicKey, parties: int, shares: int, stream: Stream, context: bytes, powers: Powers | None = None
) -> Indicator:
    """Encrypt `shares` ones at random places among `parties` and prove it for a context."""
    if not 1 <= shares <= parties:
        raise ValueError(f"{shares} of {parties} shares of noise cannot be kept; keep 1 to {parties}")
    chosen = set(stream.permutation(parties)[:shares])
    return prove_indicator(key, [int(place in chosen) for place in range(parties)], stream, context, powers)


def prove_indicator(
    key: PublicKey, bits: Sequence[int], stream: Stream, context: bytes, powers: Powers | None = None
) -> Indicator:
    """Encrypt the given bits and prove that they are bits; `powers` are quicker if they use the factors of n."""
    randomness = [random_unit(key, stream) for _ in bits]
    drafts = [_Draft(key, bit, stream) for _ in range(REPETITIONS) for bit in bits]
    raised = _raised(key, [*randomness, *(number for draft in drafts for number in draft.numbers)], powers)
    ciphertexts = [(1 + key.n * (bit % key.n)) * next(raised) % key.n_squared for bit in bits]
    commitments = [
        draft.commitments(key, ciphertext, next(raised), next(raised))
        for draft, ciphertext in zip(drafts, ciphertexts * REPETITIONS, strict=True)
    ]
    challenges = challenges_of(key, context, ciphertexts, commitments)
    proofs = tuple(
        draft.finish(key, committed, challenge, r)
        for draft, committed, challenge, r in zip(
            drafts, commitments, challenges, randomness * REPETITIONS, strict=True
        )
    )
    opening = mpz(1)
    for r in randomness:
        opening = opening * r % key.n
    return Indicator(tuple(ciphertexts), opening, proofs)


def check_indicator(key: PublicKey, indicator: Indicator, shares: int, context: bytes) -> None:
    """Raise `WrongProof` unless every ciphertext holds 0 or 1 and exactly `shares` of them hold 1.

    The context names what the proof was made for: another one's does not fit.
    """
    _check_numbers(key, indicator)
    if not opens_to(key, indicator.ciphertexts, indicator.opening, shares):
        raise WrongProof(f"the indicator does not keep exactly {shares} shares of noise; stop the run")
    if not _holds_bits(key, indicator, context):
        raise WrongProof("the indicator holds something other than zeros and ones; stop the run")


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


def _raised(key: PublicKey, numbers: Sequence[mpz], powers: Powers | None) -> Iterator[mpz]:
    return iter(powers(numbers) if powers is not None else [encrypt(key, 0, number) for number in numbers])


class _Draft:
    """A proof before its challenge: the false statement's answer is simulated, the true statement's is committed to."""

    def __init__(self, key: PublicKey, bit: int, stream: Stream) -> None:
        self._bit = bit
        self._simulated = stream.below(_CHALLENGES)
        self._answer, self._nonce = random_unit(key, stream), random_unit(key, stream)

    @property
    def numbers(self) -> tuple[mpz, mpz]:
        """The numbers of which `commitments` needs the n-th powers."""
        return self._answer, self._nonce

    def commitments(self, key: PublicKey, ciphertext: mpz, answer_power: mpz, nonce_power: mpz) -> tuple[mpz, mpz]:
        claimed = gmpy2.powmod(_residue(key, ciphertext, 1 - self._bit), self._simulated, key.n_squared)
        false = answer_power * gmpy2.invert(claimed, key.n_squared) % key.n_squared
        return (nonce_power, false) if self._bit == 0 else (false, nonce_power)

    def finish(self, key: PublicKey, commitments: tuple[mpz, mpz], challenge: int, randomness: mpz) -> BitProof:
        own = (challenge - self._simulated) % _CHALLENGES
        answer = self._nonce * gmpy2.powmod(randomness, own, key.n) % key.n
        if self._bit == 0:
            return BitProof(commitments, (answer, self._answer), own)
        return BitProof(commitments, (self._answer, answer), self._simulated)


def _holds_bits(key: PublicKey, indicator: Indicator, context: bytes) -> bool:
    """Whether answer^n = commitment * residue^challenge for every statement and repetition, in a few random products.

    Soundness: in the quotient by the n-th powers, a cyclic group of order n, a wrong equation is not zero modulo some
    prime factor of n, and random coefficients below all these take the sum of all equations to zero there with
    probability at most 1/65536 a product. Up to n-th powers is all that is claimed: a residue is one, or it is not.
    The coefficients are drawn after the proofs have come, by whoever checks them. They cannot be tried out beforehand.
    """
    commitments = [proof.commitments for proof in indicator.proofs]
    challenges = challenges_of(key, context, indicator.ciphertexts, commitments)
    stream = Stream.system()
    return all(_holds_one_batch(key, indicator, challenges, stream) for _ in range(_PRODUCTS))


def _holds_one_batch(key: PublicKey, indicator: Indicator, challenges: Sequence[int], stream: Stream) -> bool:
    parties = len(indicator.ciphertexts)
    exponents = [[0, 0] for _ in indicator.ciphertexts]
    coefficients: list[int] = []  # of every statement: for each proof that of 0, then that of 1
    for place, (proof, challenge) in enumerate(zip(indicator.proofs, challenges, strict=True)):
        parts = (proof.challenge_for_zero, (challenge - proof.challenge_for_zero) % _CHALLENGES)
        for bit in (0, 1):
            coefficients.append(stream.bits(_CHALLENGE_BITS))
            exponents[place % parties][bit] += coefficients[-1] * parts[bit]
    residues = [_residue(key, ciphertext, bit) for ciphertext in indicator.ciphertexts for bit in (0, 1)]
    claimed = [number for proof in indicator.proofs for number in proof.commitments]
    answers = product_of_powers([n for proof in indicator.proofs for n in proof.answers], coefficients, key.n)
    claims = product_of_powers(
        [*claimed, *residues], [*coefficients, *(exponent for pair in exponents for exponent in pair)], key.n_squared
    )
    return bool(encrypt(key, 0, answers) == claims)


def _residue(key: PublicKey, ciphertext: mpz, bit: int) -> mpz:
    """Compute ciphertext / (1+n)^bit, an n-th power exactly if the ciphertext holds `bit`; 1 / (1+n) is 1 - n."""
    return ciphertext * (1 - bit * key.n) % key.n_squared


def challenges_of(
    key: PublicKey, context: bytes, ciphertexts: Sequence[mpz], commitments: Sequence[tuple[mpz, mpz]]
) -> list[int]:
    """Return every proof's challenge, one for each repetition: the hash of everything that the prover fixed before."""
    fixed = [sha256(context).digest(), key.to_bytes(), len(ciphertexts).to_bytes(4, "big")]
    fixed += [ciphertexts_to_bytes(key, ciphertexts)]
    fixed += [ciphertexts_to_bytes(key, pair) for pair in commitments]
    digest = sha256(b"dp-subn v1 indicator " + b"".join(fixed)).digest()
    starts = range(0, REPETITIONS * _CHALLENGE_BYTES, _CHALLENGE_BYTES)
    once = [int.from_bytes(digest[start : start + _CHALLENGE_BYTES], "big") for start in starts]
    return [challenge for challenge in once for _ in ciphertexts]


def _check_numbers(key: PublicKey, indicator: Indicator) -> None:
    """Check that every number from outside is a unit in its range."""
    if len(indicator.proofs) != len(indicator.ciphertexts) * REPETITIONS:
        raise WrongProof(f"the indicator does not bring {REPETITIONS} proofs per ciphertext; stop the run")
    commitments = [commitment for proof in indicator.proofs for commitment in proof.commitments]
    check_ciphertexts(key, [*indicator.ciphertexts, *commitments])
    numbers = [indicator.opening, *(answer for proof in indicator.proofs for answer in proof.answers)]
    if not all(0 < number < key.n for number in numbers) or not are_units(key, numbers):
        raise WrongProof("the indicator's proof holds a number that no honest prover sends; stop the run")


def _split(data: bytes, lengths: Sequence[int]) -> Iterator[mpz]:
    start = 0
    for length in lengths:
        yield mpz.from_bytes(data[start : start + length], "big")
        start += length


def _number(key: PublicKey, value: mpz) -> bytes:
    return bytes(value.to_bytes(key.ciphertext_bytes // 2, "big"))
