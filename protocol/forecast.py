"""What a plan will cost and how good its answers can be, before anything is spent: from public numbers alone.

It does not know data: what depends on the network is bounded by the plan's limits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from protocol.limits import Limits
from protocol.network import Family
from protocol.queries import candidate_families, is_sum_pass
from protocol.schedule import Step
from protocol.secure_sum import WORD_BYTES, Layout, ciphertexts, retained_variance
from protocol.terms import Terms

# Measured on one core: what a party does with one ciphertext, and the curator with one sum of them (3072 bits).
_SECONDS_PER_CIPHERTEXT = 0.006
_SECONDS_PER_DECRYPTION = 0.009
_MEASURED_BITS = 3072


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
    return Forecast(prices, deltas, tuple(_step(terms, step) for step in terms.steps))


def _step(terms: Terms, step: Step) -> StepForecast:
    cells = _cells(terms, step)
    if not cells or not step.budget:
        return StepForecast(step.name, len(step.parties), 0, 0, 0, 0, 0.0, None)
    rates = terms.noise_rates(step, [()] * len(cells))
    everybody, law = is_sum_pass(terms, step), terms.plan.law
    rows = terms.plan.total_rows if everybody else terms.plan.members[step.parties[-1]].rows
    layout = Layout(cells, rates, rows)
    count = ciphertexts(terms.plan, layout) if everybody else 0
    size = count * terms.plan.key_bits // 4 if count else WORD_BYTES * layout.size
    variances = [retained_variance(terms.plan, rate) if everybody else law.variance(rate) for rate in rates]
    return StepForecast(
        step.name,
        len(step.parties),
        len(cells),
        layout.size,
        count,
        size,
        _seconds(terms, count),
        _error(cells, [law.mean_size(variance) for variance in variances], rows),
    )


def _cells(terms: Terms, step: Step) -> tuple[int, ...]:
    """Cells of every table of the step, at most."""
    if step.stage == "correlations":
        return terms.cover.view_cells
    if step.stage == "update":
        return (_largest_family(terms, terms.frontier_limits),) * terms.domain.count
    if step.stage == "parameters":
        return (_largest_family(terms, terms.limits),) * terms.domain.count
    if step.stage == "candidates":
        # The variables already placed are not known yet; any as many give about as many candidates.
        placed = [Family(variable) for variable in range(int(step.name.rpartition("/")[2]))]
        return tuple(terms.domain.cells(family.variables) for family in candidate_families(terms, placed))
    return ()


def _largest_family(terms: Terms, limits: Limits) -> int:
    falling = sorted(terms.domain.sizes[: terms.domain.count], reverse=True)
    most = math.prod(falling[: 1 + (limits.degree if limits.degree is not None else len(falling))])
    return max(falling[0], min(most, limits.cells if limits.cells is not None else most))


def _seconds(terms: Terms, count: int) -> float:
    scale: float = (terms.plan.key_bits / _MEASURED_BITS) ** 2.6
    return count * scale * (_SECONDS_PER_CIPHERTEXT + _SECONDS_PER_DECRYPTION)


def _error(cells: Sequence[int], sizes: Sequence[float], rows: int) -> float:
    """Half the expected absolute noise of all cells, as a share of the rows."""
    per_table = [count * size / (2 * rows) for count, size in zip(cells, sizes, strict=True)]
    return min(1.0, sum(per_table) / len(per_table))
