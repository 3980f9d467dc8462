"""Forecast of a plan's cost and of the noise in its answers, from public numbers alone, before anything is spent.

It does not know data: sizes that depend on the network are bounded by the plan's limits.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, Layout
from protocol.stages.registry import blank_columns, stage_of

# Measured on one core with 3072-bit keys: a party's work per ciphertext, and the curator's per sum of ciphertexts.
_SECONDS_PER_CIPHERTEXT = 0.006
_SECONDS_PER_DECRYPTION = 0.009
_MEASURED_BITS = 3072


@dataclass(frozen=True)
class StepForecast:
    """Forecast of one step; `tables`, `cells`, bytes and `error` are upper bounds if they depend on the network."""

    name: str
    parties: int
    tables: int
    cells: int
    ciphertexts: int
    bytes_per_party: int
    seconds: float
    error: float | None  # expected total variation distance of a table from the true table, by noise alone


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
    if step.stage == "joining" or not step.budget or not stage_of(terms, step).size(terms, step).tables:
        return StepForecast(step.name, len(step.parties), 0, 0, 0, 0, 0.0, None)
    stage = stage_of(terms, step)
    size, alike = stage.size(terms, step), stage.cells_by_rate(terms, step)
    rows = terms.plan.total_rows if stage.is_sum else terms.plan.members[step.parties[-1]].rows
    layout = Layout(tuple(alike.values()), tuple(alike), rows)
    count = terms.plan.noise_mode.ciphertexts(layout) if stage.is_sum else 0
    noise = math.fsum(number * _mean_size(terms, stage.is_sum, rate) for rate, number in alike.items())
    if step.stage == "levels":  # counts follow from what is sent, which may be coefficients
        mean_size = terms.plan.definition.mean_size
        noise = math.fsum(table.counts.size * mean_size(table.variance) for table in blank_columns(terms))
    counted = 1 if step.stage == "dependence" else 2  # one number of rows; in a table, misplaced rows count twice
    return StepForecast(
        step.name,
        len(step.parties),
        size.tables,
        size.cells,
        count,
        count * terms.plan.key_bits // 4 if count else WORD_BYTES * size.cells,
        _seconds(terms, count),
        min(1.0, noise / (counted * rows) / size.tables),  # half the absolute noise of a table, as a share of the rows
    )


def _mean_size(terms: Terms, everybody: bool, rate: Fraction) -> float:
    definition = terms.plan.definition
    return definition.mean_size(
        terms.plan.noise_mode.retained_variance(rate) if everybody else definition.variance(rate)
    )


def _seconds(terms: Terms, count: int) -> float:
    scale: float = (terms.plan.key_bits / _MEASURED_BITS) ** 2.6
    return count * scale * (_SECONDS_PER_CIPHERTEXT + _SECONDS_PER_DECRYPTION)
