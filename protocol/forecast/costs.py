"""What a plan will cost and how good its answers can be, before anything is spent: from public numbers alone.

It does not know data: what depends on the network is bounded by the plan's limits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates
from protocol.plan.passes import is_sum_pass
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, Layout
from protocol.tables.domain import Domain

# Measured on one core: what a party does with one ciphertext, and the curator with one sum of them (3072 bits).
_SECONDS_PER_CIPHERTEXT = 0.006
_SECONDS_PER_DECRYPTION = 0.009
_MEASURED_BITS = 3072

Size = tuple[int, int]  # tables, cells of all of them


@dataclass(frozen=True)
class StepForecast:
    """`tables`, `cells`, `bytes` and `error` are upper bounds where the network decides them."""

    name: str
    parties: int
    tables: int
    cells: int
    ciphertexts: int
    bytes_per_party: int
    seconds: float
    error: float | None  # expected total variation distance of a table from the true one, by noise alone


@dataclass(frozen=True)
class Forecast:
    prices: tuple[Fraction, ...]  # epsilon by party
    deltas: tuple[Fraction, ...]
    steps: tuple[StepForecast, ...]

    @property
    def bytes_per_party(self) -> int:
        return sum(step.bytes_per_party for step in self.steps)

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)


def forecast(terms: Terms) -> Forecast:
    prices = tuple(terms.price(party) for party in range(terms.plan.parties))
    deltas = tuple(terms.delta(party) for party in range(terms.plan.parties))
    compares = any(step.stage == "candidates" for step in terms.steps)
    compared = _compared(terms.domain, terms.limits) if compares else ()
    return Forecast(prices, deltas, tuple(_step(terms, step, compared) for step in terms.steps))


def _step(terms: Terms, step: Step, compared: Sequence[Size]) -> StepForecast:
    tables, cells = _size(terms, step, compared)
    if not tables or not step.budget:
        return StepForecast(step.name, len(step.parties), 0, 0, 0, 0, 0.0, None)
    alike = _alike(terms, step, tables, cells)
    everybody = is_sum_pass(terms, step)
    rows = terms.plan.total_rows if everybody else terms.plan.members[step.parties[-1]].rows
    layout = Layout(tuple(alike.values()), tuple(alike), rows)
    count = terms.plan.noise_mode.ciphertexts(layout) if everybody else 0
    noise = math.fsum(number * _mean_size(terms, everybody, rate) for rate, number in alike.items())
    return StepForecast(
        step.name,
        len(step.parties),
        tables,
        cells,
        count,
        count * terms.plan.key_bits // 4 if count else WORD_BYTES * cells,
        _seconds(terms, count),
        min(1.0, noise / (2 * rows) / tables),  # half the absolute noise of a table, as a share of the rows
    )


def _alike(terms: Terms, step: Step, tables: int, cells: int) -> dict[Fraction, int]:
    """How many cells have noise of each rate: what tables they are in makes no difference to what is sent."""
    if step.stage != "correlations":
        return {terms.plan.definition.rate(step.budget / tables): cells}
    found: dict[Fraction, int] = {}
    sizes = terms.cover.view_cells
    for rate, number in zip(terms.noise_rates(step, sizes), sizes, strict=True):
        found[rate] = found.get(rate, 0) + number
    return found


def _mean_size(terms: Terms, everybody: bool, rate: Fraction) -> float:
    definition = terms.plan.definition
    return definition.mean_size(
        terms.plan.noise_mode.retained_variance(rate) if everybody else definition.variance(rate)
    )


def _size(terms: Terms, step: Step, compared: Sequence[Size]) -> Size:
    """Of all tables of the step together, at most."""
    count = terms.domain.count
    if step.stage == "correlations":
        return len(terms.cover.views), terms.cover.cells
    if step.stage == "update":
        return count, count * _largest_family(terms, terms.frontier_limits)
    if step.stage in ("tables", "parameters"):
        return count, count * _largest_family(terms, terms.limits)
    if step.stage == "candidates":
        return compared[int(step.name.rpartition("/")[2]) - 1]
    return 0, 0


@lru_cache(maxsize=64)  # up to a second of going through families that depend on neither rows nor parties
def _compared(domain: Domain, limits: Limits) -> tuple[Size, ...]:
    """By how many variables are placed already: any as many give about as many candidates."""
    found = []
    for placed in range(1, domain.count):
        families = candidates(domain, range(placed), range(placed, domain.count), limits)
        found.append((len(families), sum(domain.cells((child, *parents)) for child, parents in families)))
    return tuple(found)


def _largest_family(terms: Terms, limits: Limits) -> int:
    falling = sorted(terms.domain.sizes[: terms.domain.count], reverse=True)
    most = math.prod(falling[: 1 + (limits.degree if limits.degree is not None else len(falling))])
    return max(falling[0], min(most, limits.cells if limits.cells is not None else most))


def _seconds(terms: Terms, count: int) -> float:
    scale: float = (terms.plan.key_bits / _MEASURED_BITS) ** 2.6
    return count * scale * (_SECONDS_PER_CIPHERTEXT + _SECONDS_PER_DECRYPTION)
