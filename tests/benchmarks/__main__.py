"""Benchmarks: the table of ratios, one benchmark's own tables, or a comparison with the baseline.

python -m tests.benchmarks                  ratios, slopes and instructions; writes build/bench.json and build/bench.svg
python -m tests.benchmarks NAME ...         what these benchmarks print by themselves (all: "everything")
python -m tests.benchmarks compare          build/bench.json beside tests/benchmarks/baseline.json; fails if worse
python -m tests.benchmarks compare-short    the instructions alone, counted now
python -m tests.benchmarks baseline         makes build/bench.json the baseline

`tests.benchmarks.beside_peers` runs only where it is named: it needs the peers' packages (`make build/peers/ready`)
and half an hour.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks.kernels import NO_COUNTER, instructions
from tests.benchmarks.ratio import Ratio
from tests.benchmarks.scaling import curves, figure

BENCHMARKS = (
    "sampler",
    "scoring",
    "covering",
    "synthesis_speed",
    "secure_sum",
    "costs",
    "service",
    "parties",
    "pages",
    "numbers",
    "rows_in",
    "wide",
    "writing",
)
WITH_RATIOS = ("rows_in", "scoring", "synthesis_speed", "writing", "sampler", "secure_sum")
FOUND, FIGURE = Path("build/bench.json"), Path("build/bench.svg")
BASELINE = Path(__file__).with_name("baseline.json")
# How much worse than the baseline is no change: times differ from run to run, and counts only with addresses.
ALLOWED = {"ratios": 1.6, "instructions": 1.03}
ALLOWED_SLOPE = 0.2
Json = dict[str, Any]


def measure() -> None:
    """Print one table, and write it with its figure."""
    found: Json = {"ratios": {}, "slopes": {}, "instructions": {}}
    print(f"{'':46} {'beside':42} {'ours s':>8} {'other s':>8} {'ratio':>7}")
    for one in _ratios():
        found["ratios"][one.name] = round(one.ratio, 5)
        print(f"{one.name:46} {one.beside:42} {one.ours:8.3f} {one.other:8.3f} {one.ratio:7.3f}", flush=True)
    drawn = curves()
    for curve in drawn:
        found["slopes"][curve.name] = round(curve.slope, 3)
        points = ", ".join(f"{size:,}: {cost:.2f} s" for size, cost in zip(curve.sizes, curve.seconds, strict=True))
        print(f"{'cost by ' + curve.name:46} slope {curve.slope:5.2f}  ({points})", flush=True)
    found["instructions"] = _counted()
    FOUND.parent.mkdir(exist_ok=True)
    FOUND.write_text(json.dumps(found, indent=1) + "\n")
    figure(drawn, FIGURE)
    print(f"written: {FOUND}, {FIGURE}")


def _ratios() -> Iterator[Ratio]:
    for name in WITH_RATIOS:
        yield from import_module(f"tests.benchmarks.{name}").ratios()


def _counted() -> dict[str, int]:
    counts = instructions()
    for name, count in counts.items():
        print(f"{name:46} {count / 1e6:10.1f} million instructions")
    if not counts:
        print(NO_COUNTER)
    return counts


def worse(found: Mapping[str, Mapping[str, float]], baseline: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Name what is worse than the baseline by more than is allowed, or was measured there and is missing."""
    told = []
    for kind, own in baseline.items():
        for name, before in own.items():
            now, most = found[kind].get(name), before + ALLOWED_SLOPE if kind == "slopes" else before * ALLOWED[kind]
            if now is None:
                told.append(f"{kind}: {name} is missing; renew the baseline if that is meant")
            elif now > most:
                told.append(f"{kind}: {name} is {now:,} and was {before:,}; at most {most:,.5g} is allowed")
    return told


def compare(short: bool) -> int:
    baseline = json.loads(BASELINE.read_text())
    if short:
        baseline, found = {"instructions": baseline["instructions"]}, {"instructions": _counted()}
        if not found["instructions"]:
            return int("CI" in os.environ)  # a gate that nobody watches is none
    elif FOUND.exists():
        found = json.loads(FOUND.read_text())
        if not found["instructions"]:
            del baseline["instructions"]
    else:
        print(f"{FOUND} is missing: run `make bench` first", file=sys.stderr)
        return 2
    told = worse(found, baseline)
    print("\n".join(told) or "nothing is worse than the baseline")
    return int(bool(told))


def main(names: list[str]) -> int:
    match names:
        case []:
            measure()
        case ["compare" | "compare-short"]:
            return compare(short=names[0] == "compare-short")
        case ["baseline"]:
            BASELINE.write_text(FOUND.read_text())
        case _:
            for name in BENCHMARKS if names == ["everything"] else names:
                print(f"\n=== {name}", flush=True)
                module = import_module(f"tests.benchmarks.{name}")
                module.main([]) if name == "costs" else module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
