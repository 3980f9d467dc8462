"""The closing tables of a demonstration: what each run did, what it cost, and how good its table is.

It does not know how the runs came about. Every figure but seconds and error is the manifest's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from protocol.forecast.error import predicted
from protocol.plan.terms import Terms
from protocol.run.manifest import Manifest
from protocol.stages.methods import terms_of
from protocol.tables.schema import Schema


@dataclass(frozen=True)
class DemoRun:
    method: str  # as it was wanted
    result: Path
    manifest: Manifest
    seconds: float
    error: float  # of pairs of attributes, against the pooled rows

    @property
    def terms(self) -> Terms:
        return terms_of(self.manifest.plan, Schema.parse(self.manifest.schema_text))

    @property
    def label(self) -> str:
        taken = self.manifest.plan.method
        return taken if taken == self.method else f"{self.method}: {taken}"


def stages(runs: Sequence[DemoRun]) -> Iterator[str]:
    """Yield a line for each stage of each run."""
    yield f"\n{'method':22} {'stage':14} {'epsilon':>10} {'cells':>10} {'ciphertexts':>12} {'bytes':>12}"
    for one in runs:
        prices = _prices(one)
        for number, cost in enumerate(one.manifest.phases):
            label = "" if number else one.label
            figures = f"{cost.cells:10,} {cost.ciphertexts:12,} {cost.bytes:12,}"
            yield f"{label:22} {cost.name:14} {prices[cost.name]!s:>10} {figures}"


def comparison(runs: Sequence[DemoRun]) -> Iterator[str]:
    """Yield a line for each run: its price, the error of its table, its time and its bytes."""
    yield f"\n{'method':22} {'noise':12} {'epsilon':>8} {'error':>7} {'predicted':>10} {'seconds':>8} {'bytes':>12}"
    untold = {}
    for one in runs:
        plan, said = one.manifest.plan, predicted(one.terms)
        forecast = "see below" if said.error is None else f"{said.error:.4f}"
        if said.error is None:
            untold[one.label] = said.why
        sent = sum(cost.bytes for cost in one.manifest.phases)
        spent = max(record.spent for record in one.manifest.parties)
        figures = f"{spent!s:>8} {one.error:7.4f} {forecast:>10} {one.seconds:8.1f} {sent:12,}"
        yield f"{one.label:22} {plan.noise:12} {figures}"
    yield "error: the share of rows that would have to change, on average over all pairs of columns"
    for label, why in untold.items():
        yield f"predicted error of {label}: {why}"


def budgets(runs: Sequence[DemoRun], spent: Mapping[str, Fraction], total: str) -> Iterator[str]:
    """Yield a line for each hospital: the manifests' prices, and their sum by its own ledger."""
    yield ""
    for name, ledger in spent.items():
        own = [record for one in runs for record in one.manifest.parties if record.name == name]
        prices, deltas = " + ".join(str(record.spent) for record in own), sum(record.delta for record in own)
        added = f"{prices} = {ledger}" if len(own) > 1 else str(ledger)
        yield f"{name} spent {added} of its epsilon {total}{f' and a delta of {deltas}' if deltas else ''}"


def _prices(one: DemoRun) -> dict[str, Fraction]:
    """Return what each stage cost the party that paid most for it, by the receipts."""
    stage_of = {step.name: step.stage for step in one.terms.steps}
    found = {cost.name: Fraction(0) for cost in one.manifest.phases}
    for record in one.manifest.parties:
        own = dict.fromkeys(found, Fraction(0))
        for receipt in record.receipts:
            own[stage_of[receipt.step]] += receipt.charge
        found = {stage: max(price, own[stage]) for stage, price in found.items()}
    return found
