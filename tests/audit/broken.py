"""Deliberately broken variants, priced as if they were whole: the audit has to find each of them out.

It does not know how much the honest variants cost in truth. Nothing here is used outside the tests.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum
from crypto.paillier.public import ciphertexts_from_bytes
from crypto.randomness import Stream
from crypto.sampling.gaussian import discrete_gaussian
from protocol.plan.terms import Terms
from protocol.privacy import mechanisms
from protocol.privacy.layout import words_from_bytes
from protocol.privacy.noise_modes import Distributed
from protocol.secure_sum import plain, selected
from tests.audit.bounds import Scores
from tests.audit.laws import laplace, polya
from tests.audit.quantity import Quantity, variant
from tests.audit.totals import CELLS, PARTIES, STEP, codes, own_tables, released, scores, secret, terms, without_own
from tests.support.float_noise import float_laplace, reachable
from tests.support.small_runs import Driver, layout_of

ALPHA = Fraction(1, 2)  # epsilon 1
CERTAIN = 100.0  # a score beyond every threshold


def exact_cells(seen: NDArray[np.int64]) -> Scores:
    """Scores of pairs of cells from which all noise is gone: the row is in the first or in the second."""
    return CERTAIN * np.sign((seen[0::2] - seen[1::2]).astype(float))


def one_share() -> Quantity:
    """Noise mode `selected` with a single share, against the party whose noise it is (protocol/papers.md, no. 8)."""
    plan = terms("selected", "pure", insiders=0)
    return variant(lambda second: exact_cells(without_own(plan, second)))


def understated_sensitivity() -> Quantity:
    """Noise for tables of which one row moves one cell."""

    def attack(second: bool) -> Scores:
        with patch.object(mechanisms, "SENSITIVITY", 1):
            plan = terms("distributed", "pure", insiders=0)
            return scores(laplace(2 * ALPHA), released(plan, second)[0])

    return variant(attack)


def narrow_gaussian() -> Quantity:
    """Gaussian noise of a quarter of its deviation."""

    def narrow(variance: Fraction, size: int, stream: Stream) -> NDArray[np.int64]:
        return discrete_gaussian(variance / 16, size, stream)

    honest = own_tables("zcdp")

    def attack(second: bool) -> Scores:
        with patch.object(mechanisms, "discrete_gaussian", narrow):
            return honest.attack(second)

    return replace(honest, attack=attack, exact=None, is_broken=True)


def parts_without_insiders() -> Quantity:
    """Parts of noise that add up to one share only together with the insider's own."""
    plan = terms("distributed", "pure")
    left = polya(ALPHA, Fraction(PARTIES - 1, PARTIES))

    def attack(second: bool) -> Scores:
        with patch.object(Distributed, "_honest", PropertyMock(return_value=PARTIES)):
            return scores(left, without_own(plan, second))

    return variant(attack)


def float_noise() -> Quantity:
    """Laplace noise in floating point, whose last bits tell the count."""
    generator, scale = np.random.default_rng(), float(1 / ALPHA)

    def attack(second: bool) -> Scores:
        published = float(not second) + float_laplace(scale, CELLS // 2, generator)
        from_one, from_none = (reachable(published, count, scale) for count in (1.0, 0.0))
        return CERTAIN * (from_one.astype(float) - from_none)

    return variant(attack)


# Single contributions


def contribution(plan: Terms, second: bool, unmasked: AbstractContextManager[Any]) -> tuple[Driver, bytes]:
    """The run, and the bytes that its first party sends to the first pass."""
    run = Driver(plan, [codes(second), *[codes(False)] * (PARTIES - 1)], secret(), entropy=True).run_to(STEP)
    with unmasked:
        return run, run.answer(0, run.tasks()[0]).blob


def plain_words(plan: Terms, second: bool, unmasked: AbstractContextManager[Any]) -> NDArray[np.int64]:
    return words_from_bytes(contribution(plan, second, unmasked)[1]).view(np.int64)


def single_plain(masked: bool) -> Quantity:
    """One party's words in noise mode `distributed`: worth nothing under masks, half a share of noise without."""
    plan = terms("distributed", "pure")
    half = polya(ALPHA, Fraction(1, PARTIES - 1))

    def attack(second: bool) -> Scores:
        unmasked = patch.object(plain, "mask_words", lambda _keys, _me, count: np.zeros(count, dtype=np.uint64))
        seen = plain_words(plan, second, nullcontext() if masked else unmasked)
        return _parities(seen) if masked else scores(half, seen)

    return variant(attack, price=0 if masked else 1)


def _parities(seen: NDArray[np.int64]) -> Scores:
    """The score that is left where there is no noise law to go by: whether the first of two cells is odd."""
    return (2.0 * (seen[0::2] & 1) - 1) * CERTAIN


def single_encrypted(masked: bool) -> Quantity:
    """One party's ciphertexts in noise mode `selected`, which the curator can decrypt.

    Without masks, and if the party's noise is not kept, the curator reads its table. A run that keeps it is left out.
    """
    plan = terms("selected", "pure")

    def attack(second: bool) -> Scores:
        while True:
            unmasked = patch.object(selected, "mask_residues", lambda _keys, _me, count, _n: [mpz(0)] * count)
            run, blob = contribution(plan, second, nullcontext() if masked else unmasked)
            numbers = secret().decrypt(
                ciphertexts_from_bytes(secret().public, blob, len(blob) // secret().public.ciphertext_bytes)
            )
            if masked:
                return _parities(np.array([int(number & 0xFFFF) for number in numbers][: len(numbers) // 2 * 2]))
            seen = _unpacked(plan, run, numbers)
            if seen is not None:
                return exact_cells(seen)

    return variant(attack, price=0 if masked else 1)


def _unpacked(plan: Terms, run: Driver, numbers: list[mpz]) -> NDArray[np.int64] | None:
    """The cells of one contribution, if they hold no noise."""
    task = run.tasks()[0]
    layout = layout_of(plan, plan.steps[1], task.tables, plan.plan.total_rows)  # type: ignore[union-attr]
    try:
        seen = plan.plan.noise_mode.packing(layout).unpack(numbers, CELLS)  # type: ignore[attr-defined]
    except BrokenSum:
        return None
    return seen if np.abs(seen).max() <= 1 else None
