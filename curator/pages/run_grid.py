"""A run as a grid of parties and stages, and advice for a run that waits or has failed.

It does not know HTML; it reads the JSON interface's run and the plan's terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from curator import interface
from protocol.errors import PARTIES
from protocol.messages.run_states import ENDS
from protocol.plan.step import Step
from protocol.plan.terms import Terms


@dataclass(frozen=True)
class GridCell:
    kind: str  # a class of the style sheet: "done", "now", "bad", "none" or ""
    words: str


@dataclass(frozen=True)
class Line:
    """The row of one party."""

    name: str
    rows: int
    cells: tuple[GridCell, ...]
    spent: Fraction
    price: Fraction


@dataclass(frozen=True)
class Column:
    """One stage, and the exact epsilon that it costs the party with the highest price."""

    stage: str
    epsilon: Fraction
    seconds: float | None  # duration of the stage, once it has ended


@dataclass(frozen=True)
class RunGrid:
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


def grid(run: interface.Run, terms: Terms) -> RunGrid:
    stages = list(dict.fromkeys(step.stage for step in terms.steps))
    lines = []
    for number, member in enumerate(terms.plan.members):
        own = [step for step in terms.steps if number in step.parties]
        cells = [_cell(run, member.name, [step for step in own if step.stage == stage]) for stage in stages]
        spent = Fraction(run.spent[member.name])
        lines.append(Line(member.name, member.rows, tuple(cells), spent, terms.price(number)))
    columns = tuple(_column(stage, dearest(terms, stage), run) for stage in stages)
    return RunGrid(columns, tuple(lines))


def _cell(run: interface.Run, party: str, due: Sequence[Step]) -> GridCell:
    names = {step.name for step in due}
    done = sum(party in step.answered for step in run.progress if step.step in names)
    part = f" {done} of {len(due)}" if len(due) > 1 else ""
    if not due:
        return GridCell("none", "–")
    if run.step in names and party in (run.culprit or "").split(", "):
        return GridCell("bad", f"✗ {run.state.replace('_', ' ')}{part}")  # its answer may have been a refusal
    if done == len(due):
        return GridCell("done", "✓ done")
    if run.step in names and party in {entry.party for entry in run.waiting_for}:
        return GridCell("now", f"● waiting{part}")
    if run.state in ENDS:
        return GridCell("none", f"not done{part}")
    return GridCell("", part.strip() if done else "later")


def _column(stage: str, epsilon: Fraction, run: interface.Run) -> Column:
    times = [step for step in run.progress if step.stage == stage]
    begun, ended = [one.started for one in times if one.started], times[-1].ended
    seconds = (ended - begun[0]).total_seconds() if ended is not None and begun else None
    return Column(stage, epsilon, seconds)


def dearest(terms: Terms, stage: str) -> Fraction:
    """Return the highest price of this stage for any party."""
    steps = [step for step in terms.steps if step.stage == stage]
    return max(sum((step.charge(party) for step in steps), Fraction(0)) for party in range(terms.plan.parties))


def advice(run: interface.Run) -> str | None:
    """Advise the operator about a run that ended badly."""
    who = run.culprit
    if run.state == "refused":
        return (
            f"Ask the data owner of {who} what would be acceptable; then change the plan. Nobody has spent anything: "
            "a run spends nothing before all have joined."
        )
    if run.state == "timed_out":
        return (
            f"Check whether {who} can be reached: `subn-party serve` must be running there and reach this curator. "
            "Then start the plan again. Allow more time for each step if the people there need it."
        )
    if run.state == "failed" and who == "curator":
        return "Look into the curator's log for the reference above, and report it with the version of dp-subn."
    if run.state == "failed" and who == PARTIES:
        return (
            "One of the parties sent other numbers than its masked counts, and nothing tells which. Ask all of them "
            "for their version and log. Runs of other parties narrow it down, and each of them costs its own price."
        )
    if run.state == "failed":
        return (
            f"Talk to {who}: its log and `subn-party audit` say what happened there. What other parties have spent "
            "up to then stays spent; a new run costs its own price."
        )
    return None
