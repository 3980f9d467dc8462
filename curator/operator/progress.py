"""Plans, runs and their progress in words and bars, for people at a terminal.

It does not know their source: it reads the curator's JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from shutil import get_terminal_size
from typing import Any, TextIO

from protocol.messages.run_states import ACTIVE
from protocol.text import printable

_WIDTH = 20
_MOST_SHOWN = 5  # parties on one line
Json = Mapping[str, Any]


class Screen:
    """A display of a run's progress: updated in place on a terminal, else one line for every change."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: Sequence[str] = ()

    def show(self, run: Json) -> None:
        lines = list(map(printable, progress_lines(run)))
        if self._out.isatty():
            # A wrapped line would take two lines of the screen, and the next update would begin too low.
            width = get_terminal_size().columns
            up = f"\x1b[{len(self._lines)}A" if self._lines else ""
            self._out.write(up + "".join(f"\x1b[2K{line[:width]}\n" for line in lines))
        else:
            self._out.writelines(f"{line}\n" for line in lines if line not in self._lines)
        self._out.flush()
        self._lines = lines


def progress_lines(run: Json) -> list[str]:
    """Return a line for each stage, and a last line with the parties for which the run waits."""
    lines = [_stage_line(name, steps) for name, steps in _stages(run["progress"])]
    waiting = ", ".join(entry["party"] for entry in run["waiting_for"])
    state = run["state"].replace("_", " ")
    if waiting:
        return [*lines, f"{state}: waits for {waiting}"]
    return [*lines, f"{state}: the curator is at work" if run["state"] in ACTIVE else state]


def _stages(progress: Sequence[Json]) -> Iterator[tuple[str, list[Json]]]:
    found: dict[str, list[Json]] = {}
    for step in progress:
        found.setdefault(step["stage"], []).append(step)
    return iter(found.items())


def _stage_line(name: str, steps: Sequence[Json]) -> str:
    asked = [party for step in steps for party in step["of"]]
    answered = [party for step in steps for party in step["answered"]]
    filled = _WIDTH * len(answered) // len(asked)
    parties = list(dict.fromkeys(asked))
    shown = [f"{party} {_mark(answered.count(party), asked.count(party))}" for party in parties[:_MOST_SHOWN]]
    more = ["..."] if len(parties) > _MOST_SHOWN else []
    bar = f"{'█' * filled}{'░' * (_WIDTH - filled)} {len(answered)}/{len(asked)}"
    return f"{name:13} {bar:{_WIDTH + 6}} {'  '.join(shown + more)}"


def _mark(answered: int, asked: int) -> str:
    if answered == asked:
        return "✓"
    return f"{answered}/{asked}" if answered else "·"


def describe_run(run: Json) -> str:
    words = f"run {run['run']}: {run['state'].replace('_', ' ')}"
    if run["step"]:
        words += f" at {run['step']}"
    culprit = f" ({run['culprit']})" if run["culprit"] else ""
    return words + (f": {run['reason']}{culprit}" if run["reason"] else culprit)


def describe_plan(plan: Json) -> list[str]:
    lines = [f"{'step':16} {'tables':>7} {'cells':>9} {'ciphertexts':>12} {'bytes/party':>12} {'s':>6} {'noise<':>7}"]
    for step in plan["steps"]:
        error = f"{step['error']:.4f}" if step["error"] is not None and step["error"] < 1 else ""
        lines.append(
            f"{step['name']:16} {step['tables']:7,} {step['cells']:9,} {step['ciphertexts']:12,} "
            f"{step['bytes_per_party']:12,} {step['seconds']:6.1f} {error:>7}"
        )
    lines += [_error_line(plan["predicted"]), *(f"why: {reason}" for reason in plan["why"])]
    lines += advice_lines(plan["advice"])
    deltas = {party: f" and a delta of {delta}" for party, delta in plan["delta"].items() if delta != "0"}
    lines += [f"{party} pays {price}{deltas.get(party, '')}" for party, price in plan["price"].items()]
    lines.append(
        f"{plan['bytes_per_party']:,} bytes per party, about {plan['seconds']:.0f} s; nothing has been spent. "
        f"Plan {plan['plan_hash']}"
    )
    return lines


def advice_lines(advice: Sequence[Json]) -> list[str]:
    """Return a line for each piece of advice, and the second word if one of them says stop."""
    lines = [f"{one['severity']}: {one['text']}" for one in advice]
    is_stopped = any(one["severity"] == "stop" for one in advice)
    return [*lines, "this plan starts only with --anyway, and records why it should not"] if is_stopped else lines


def describe_curve(plan: Json) -> list[str]:
    """Return a bar for each epsilon, and the epsilon from which more of it helps little."""
    points = plan["curve"]
    if not points:
        return ["error by epsilon: not predicted"]
    most = max(point["error"] for point in points)
    lines = [f"{'epsilon':>8} {'error':>7}"]
    for point in points:
        bar = "█" * max(1, round(_WIDTH * point["error"] / most))
        lines.append(f"{float(Fraction(point['epsilon'])):8g} {point['error']:7.4f} {bar:{_WIDTH}} {point['method']}")
    if plan["enough"] is not None:
        least = float(Fraction(plan["enough"]))
        lines.append(f"from epsilon {least:g}, every doubling lowers the error by less than a fifth")
    return lines


def error_range(predicted: Json) -> str:
    """ "0.0525 (0.0306 to 0.0960)", or one number where the assumptions make no difference."""
    error, low, high = (f"{predicted[name]:.4f}" for name in ("error", "low", "high"))
    return error if low == high else f"{error} ({low} to {high})"


def _error_line(predicted: Json) -> str:
    if predicted["error"] is None:
        return f"error of the table: not predicted: {predicted['why']}"
    return f"predicted error of the table, the mean of all pairs of attributes: {error_range(predicted)}"
