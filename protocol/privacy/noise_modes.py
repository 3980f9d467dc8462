"""Noise modes: the parties whose noise stays in a secure sum, the amount of noise, and its description in words.

It does not know plans, masks or keys. The noise that stays in a total does not depend on how contributions travel, so
that an experiment may leave the cryptography out and still be exact.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, get_args

from crypto.errors import NoiseOutOfReach
from crypto.paillier.packing import Packing
from crypto.randomness import Stream
from protocol.options import Noise
from protocol.privacy.layout import Layout, Vector, joined
from protocol.privacy.mechanisms import PrivacyDefinition

LARGEST_TOTAL = 2**63


@dataclass(frozen=True)
class NoiseMode(ABC):
    """Noise in the sums of `parties` parties, at most `insiders` of which pool all they know."""

    uses_paillier: ClassVar[bool] = False
    definition: PrivacyDefinition
    parties: int
    insiders: int
    key_bits: int

    @property
    @abstractmethod
    def shares(self) -> Fraction:
        """The number of full shares of noise that stay in a total, as shown to people."""

    @property
    @abstractmethod
    def promise(self) -> tuple[str, str]:
        """The sentence about noise, and its condition."""

    @property
    @abstractmethod
    def kept(self) -> str:
        """The noise that stays in a total, as the end of a sentence."""

    def own_noise(self, layout: Layout, stream: Stream) -> Vector:
        """Draw one party's noise for a pass in which all parties answer."""
        return full_noise(self.definition, layout, stream)

    def retained_variance(self, rate: Fraction) -> float:
        """The variance of the noise that stays in one cell of a total."""
        return int(self.shares) * self.definition.variance(rate)

    def retained_bound(self, layout: Layout) -> int:
        """The largest noise that can stay in a total. The samplers' values are bounded with certainty."""
        return int(self.shares) * max(map(self.definition.bound, layout.rates), default=0)

    def total_bound(self, layout: Layout) -> int:
        """The bound that no honest total exceeds, including its noise."""
        return layout.bound + self.retained_bound(layout)

    def check_reach(self, layout: Layout) -> None:
        """Raise `NoiseOutOfReach` if a total with all its noise does not fit into the numbers that are added."""
        if self.total_bound(layout) >= LARGEST_TOTAL:
            raise NoiseOutOfReach("a total with all its noise takes more than 64 bits; use a larger epsilon")

    def ciphertexts(self, _layout: Layout) -> int:
        """The number of ciphertexts in one party's contribution."""
        return 0


class Selected(NoiseMode):
    """The papers' multi-party Laplace mechanism: an encrypted indicator keeps the noise of insiders + 1 parties."""

    uses_paillier = True

    @property
    def shares(self) -> Fraction:
        return Fraction(self.insiders + 1)

    def packing(self, layout: Layout) -> Packing:
        """Choose slots in which every total fits with certainty."""
        return Packing.fit(self.key_bits, layout.bound, self.retained_bound(layout))

    def check_reach(self, layout: Layout) -> None:
        self.packing(layout)

    def ciphertexts(self, layout: Layout) -> int:
        return self.packing(layout).ciphertexts(layout.size)

    @property
    def promise(self) -> tuple[str, str]:
        kept = "1 party" if not self.insiders else f"{self.insiders + 1} parties"
        return (
            f"Every total keeps the full noise of {kept}. The curator cannot tell whose noise it is, though a party "
            "may recognise its own.",
            f"{_pooling(self.insiders)}, and the curator opens nothing but totals.",
        )

    @property
    def kept(self) -> str:
        if not self.insiders:
            return "one full share of noise, from a party that nobody can name"
        return f"{self.insiders + 1} full shares of noise, from parties that nobody can name"


class Distributed(NoiseMode):
    """Noise of which every party adds a part; the parts of all parties but the insiders add up to one full share."""

    @property
    def shares(self) -> Fraction:
        return Fraction(self.parties, self._honest)

    @property
    def _honest(self) -> int:
        return self.parties - self.insiders

    def own_noise(self, layout: Layout, stream: Stream) -> Vector:
        return joined([self.definition.draw_share(rate, self._honest, cells, stream) for rate, cells in layout.runs])

    def retained_variance(self, rate: Fraction) -> float:
        return self.parties * self.definition.share_variance(rate, self._honest)

    def retained_bound(self, layout: Layout) -> int:
        return self.parties * max((self.definition.share_bound(rate, self._honest) for rate in layout.rates), default=0)

    @property
    def promise(self) -> tuple[str, str]:
        enough = (
            "the noise of any one of them is a full share"
            if self._honest == 1
            else f"the parts of any {self._honest} of them add up to a full share"
        )
        others = "all others add their" if self.insiders else "every party adds its"
        return (
            f"All parties add noise to every total; {enough}.",
            f"{_pooling(self.insiders)}, and {others} part of the noise.",
        )

    @property
    def kept(self) -> str:
        if not self.insiders:
            return "one full share of noise"
        return f"{float(self.shares):.3g} shares of noise, a part from every party"


class Local(NoiseMode):
    """Noise of which every party adds a full share."""

    @property
    def shares(self) -> Fraction:
        return Fraction(self.parties)

    @property
    def promise(self) -> tuple[str, str]:
        return (
            "Every party adds a full share of noise to each of its own contributions.",
            "The protection is the one that the price states; the totals hold as many shares of noise as there are "
            "parties.",
        )

    @property
    def kept(self) -> str:
        return f"{self.parties} full shares of noise, one from every party"


def _pooling(insiders: int) -> str:
    """The assumption about curious parties, as the beginning of a sentence."""
    if not insiders:
        return "No party uses what only it knows"
    if insiders == 1:
        return "At most 1 of the parties uses what only it knows"
    return f"At most {insiders} of the parties pool what they know"


NOISE_MODES: dict[Noise, type[NoiseMode]] = {"selected": Selected, "distributed": Distributed, "local": Local}
assert tuple(NOISE_MODES) == get_args(Noise)


def full_noise(definition: PrivacyDefinition, layout: Layout, stream: Stream) -> Vector:
    """Draw one full share of noise for every cell."""
    return joined([definition.draw(rate, cells, stream) for rate, cells in layout.runs])
