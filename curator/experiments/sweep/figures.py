"""Means over seeds, and figures of them: error by epsilon, error and bytes by parties, pairs from views by epsilon.

It does not know how results are made.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.errors import OperatorError
from protocol.exact import exact

Record = Mapping[str, Any]
Place = tuple[tuple[str, str], ...]

COSTS = ("bytes", "cells", "ciphertexts", "seconds")
PREDICTED = "predicted"  # the predicted error of all pairs, if the plan has one
_BESIDE = (*COSTS, PREDICTED)  # quantities not measured on the synthetic table
_DEFAULTS = {"parties": "3", "partition": "random", "method": "recommended", "preset": "sound"}
_AXES = {"epsilon": ("parties", "partition"), "parties": ("epsilon", "partition")}
_SPEAKING = ("preset", "update", "noise", "encoding")  # options whose values are clear without their names
_NAMES = {
    "dp-subn": "DP-SUBN",
    "privbayes": "PrivBayes",
    "privabn": "PrivABN",
    "jtree": "JTree",
    "dp-ccbn": "DP-CCBN",
    "independent": "Independent",
    "nocd": "NOCD",
    "nocd-paper": "NOCD as in the paper",
    "pairs": "every pair alone",
    "priview": "PriView, pairs",
    "priview-triples": "PriView, triples",
}
_UNIT = 3.6  # inches per panel
_MARKERS = "osD^vP*Xhd"


@dataclass(frozen=True)
class Mean:
    """One quantity of one setting, over all seeds."""

    data: str
    options: Place
    label: str
    quantity: str
    mean: float
    error: float | None  # the standard error, for two runs or more
    runs: int

    def option(self, name: str) -> str:
        default = "" if self.is_of_views else _DEFAULTS.get(name, "")
        return dict(self.options).get(name, default)

    @property
    def is_of_views(self) -> bool:
        return "design" in dict(self.options)


def means(records: Iterable[Record]) -> list[Mean]:
    """Return the means of every quantity and setting. Refused settings have none."""
    values: dict[tuple[str, Place, str, str], list[float]] = defaultdict(list)
    records = [record for record in records if "refused" not in record["outcome"]]
    labels = _labels(records)
    for record in records:
        place = tuple(sorted(record["options"].items()))
        found = record["outcome"]["measured"] | {n: record["outcome"][n] for n in _BESIDE if n in record["outcome"]}
        for quantity, value in found.items():
            label = record["label"] or labels[place]
            values[record["data"], place, label, quantity].append(value)
    return [Mean(*key, *_mean_and_error(found), len(found)) for key, found in values.items()]


def write_means(path: Path, found: Sequence[Mean]) -> None:
    names = sorted({name for one in found for name, _ in one.options})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "label", *names, "quantity", "mean", "standard_error", "runs"])
        for one in found:
            error = "" if one.error is None else f"{one.error:.6g}"
            options = [dict(one.options).get(name, "") for name in names]
            writer.writerow([one.data, one.label, *options, one.quantity, f"{one.mean:.6g}", error, one.runs])


def draw(found: Sequence[Mean], folder: Path) -> list[Path]:
    """Draw a figure for everything that was measured at two or more values of an axis."""
    require_matplotlib()
    paths = []
    for axis in _AXES:
        groups: dict[tuple[str, ...], list[Mean]] = defaultdict(list)
        for one in found:
            if one.option(axis):
                groups[_sheet(one, axis)].append(one)
        for names, group in groups.items():
            if len({one.option(axis) for one in group}) > 1:
                paths += _draw_group(group, axis, names, folder)
    return paths


def _sheet(one: Mean, axis: str) -> tuple[str, ...]:
    """Return the key of the figure for this mean: everything in one figure has these settings in common."""
    if one.is_of_views:
        return one.data, "views", f"encoding {one.option('encoding') or 'native'}"
    return one.data, *(f"{name} {one.option(name)}" for name in _AXES[axis])


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        needed = "figures need matplotlib, which is not installed"
        raise OperatorError(f"{needed}: install the extra `experiments` (pip install 'dp-subn[experiments]')") from None


def _draw_group(group: Sequence[Mean], axis: str, names: Sequence[str], folder: Path) -> list[Path]:
    quantities = list(dict.fromkeys(one.quantity for one in group))
    errors = [name for name in quantities if name not in _BESIDE]
    sheets = {"error": errors} | ({"bytes": ["bytes"]} if axis == "parties" and "bytes" in quantities else {})
    paths = []
    for sheet, panels in sheets.items():
        if panels:
            words = "-".join((f"{sheet}-by-{axis}", *names)).replace(" ", "-").replace("/", "_").replace(":", "-")
            paths.append(_draw(group, axis, panels, ", ".join(names), folder / f"{words}.png"))
    return paths


def _draw(group: Sequence[Mean], axis: str, panels: Sequence[str], title: str, path: Path) -> Path:
    from matplotlib.figure import Figure

    across = min(2, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(_UNIT * 1.35 * across + 0.6, _UNIT * down + 0.9), layout="constrained")
    places = sorted({one.option(axis) for one in group}, key=exact)
    labels = list(dict.fromkeys(one.label for one in group))
    for number, quantity in enumerate(panels):
        axes = figure.add_subplot(down, across, number + 1)
        for style, label in enumerate(labels):
            line = [one for one in group if (one.label, one.quantity) == (label, quantity)]
            _draw_line(axes, sorted(line, key=lambda one: exact(one.option(axis))), places, axis, label, style)
        axes.set_xticks(range(len(places)), places)
        axes.set_xlabel(axis)
        axes.set_ylabel(_described(quantity))
        axes.set_yscale("log" if quantity == "bytes" else "linear")
        if quantity != "bytes":
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(2 * across, len(names)), frameon=False)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    return path


def _draw_line(axes: Any, line: Sequence[Mean], places: Sequence[str], axis: str, label: str, style: int) -> None:
    if line:
        axes.errorbar(
            [places.index(one.option(axis)) for one in line],
            [one.mean for one in line],
            yerr=[one.error or 0.0 for one in line],
            label=label,
            marker=_MARKERS[style % len(_MARKERS)],
            markersize=5,
            capsize=3,
            linewidth=1.4,
        )


def _described(quantity: str) -> str:
    if "-way" in quantity:
        return f"average variation distance ({quantity})"
    if quantity.startswith("wrong about"):
        return f"misclassification rate ({quantity.removeprefix('wrong about ')})"
    return "bytes sent by all, after joining" if quantity == "bytes" else quantity


def _labels(records: Sequence[Record]) -> dict[Place, str]:
    """Return a label for each setting: the method, and the other options, except axes, in which these runs differ."""
    places = list(dict.fromkeys(tuple(sorted(record["options"].items())) for record in records))
    apart = [
        name
        for name in dict.fromkeys(name for place in places for name, _ in place)
        if name not in _AXES and name != "partition" and len({dict(place).get(name) for place in places}) > 1
    ]
    return {place: _words(dict(place), apart) for place in places}


def _words(options: Mapping[str, str], apart: Sequence[str]) -> str:
    first = options.get("design") or options.get("method", _DEFAULTS["method"])
    words = [_NAMES.get(first, first)]
    for name in apart:
        if name in options and name not in ("method", "design"):
            words.append(options[name] if name in _SPEAKING else f"{name} {options[name]}")
    return ", ".join(words)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
