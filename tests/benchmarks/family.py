"""The papers' methods side by side: runs the grid of family.toml and writes family.md with its figures.

    python -m tests.benchmarks.family [--workers N] [--out DIR]

It does not know what the papers claim: `docs/methods.md` compares.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from curator.experiments.sweep.command import Bar
from curator.experiments.sweep.figures import Mean, draw, means, write_means
from curator.experiments.sweep.grid import read_grid
from curator.experiments.sweep.runner import run_sweep
from tests.benchmarks.utility_data import DATA, ROOT

HERE = Path(__file__).parent
GRID, DOCUMENT, FIGURES = HERE / "family.toml", HERE / "family.md", HERE / "family"
OUT = ROOT / "build" / "family"

METHODS = {
    "guided": "guided",
    "dp-subn": "DP-SUBN",
    "jtree": "JTree",
    "privbayes": "PrivBayes",
    "privabn": "PrivABN",
    "dp-ccbn": "DP-CCBN",
    "independent": "Independent",
}
DESIGNS = {
    "nocd": "views, NOCD",
    "nocd-paper": "views, NOCD as in the paper",
    "priview": "views, PriView's pairs",
    "priview-triples": "views, PriView's triples",
}
WIDE, CLASSIFIED = "-wide", "adult-classified"
PAPERS_PARTIES, PAPERS_EPSILON = "3", "0.2"  # where the other one is varied


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of results, which a stopped sweep goes on from")
    chosen = parser.parse_args()
    if absent := [str(source.table) for source in DATA.values() if not source.table.is_file()]:
        sys.exit(f"this benchmark needs public tables that are not part of the project: {absent[0]} is not there")
    records = run_sweep(read_grid(GRID), chosen.out, chosen.workers, Bar(sys.stderr).show)
    found = named(means(records))
    write_means(chosen.out / "means.csv", found)
    figures(found)
    refused = sorted({record["outcome"]["refused"] for record in records if "refused" in record["outcome"]})
    DOCUMENT.write_text("\n\n".join(document(found, refused)) + "\n", encoding="utf-8")


def named(found: Iterable[Mean]) -> list[Mean]:
    """Return the means under the papers' names, in the order of the tables."""
    names = [*METHODS.values(), *DESIGNS.values()]
    labelled = [replace(one, label=(DESIGNS | METHODS)[one.option("design") or one.option("method")]) for one in found]
    return sorted(labelled, key=lambda one: names.index(one.label))


def figures(found: Sequence[Mean]) -> None:
    """Draw errors by epsilon and by the number of parties, and leave out bytes."""
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("*.png"):
        old.unlink()
    for path in draw([one for one in found if WIDE not in one.data and one.quantity != "bytes"], FIGURES):
        if path.name.startswith("error-by-parties") and f"epsilon-{PAPERS_EPSILON}-" not in path.name:
            path.unlink()


def document(found: Sequence[Mean], refused: Sequence[str]) -> Iterator[str]:
    yield "# The family of methods, side by side"
    yield (
        "Written by `python -m tests.benchmarks.family`; do not edit. What the figures say, beside what the papers "
        "claim, is in [docs/methods.md](../../docs/methods.md). Errors are average total variation distances of "
        "marginals of two attributes, and in brackets of three. Rows are divided at random, one insider (none where "
        f"one party has all rows), pure epsilon, noise distributed. Runs of a setting: {_runs(found, False)}, of views "
        f"{_runs(found, True)}. `-` was not run or is refused."
    )
    yield from _by_epsilon(found)
    yield from _by_parties(found)
    yield from _wide(found)
    yield from _views(found)
    yield from _classified(found)
    yield "## Figures"
    yield "Bars are standard errors, where there is more than one run."
    for path in sorted(FIGURES.glob("*.png")):
        yield f"![{path.stem.replace('-', ' ')}](family/{path.name})"
    if refused:
        yield "## Plans that were refused"
        yield "\n".join(f"- {sentence}" for sentence in refused)


def _by_epsilon(found: Sequence[Mean]) -> Iterator[str]:
    yield "## By epsilon, three parties"
    own = [one for one in found if one.option("parties") == PAPERS_PARTIES and one.data in DATA]
    yield from _pairs_and_triples(own, "epsilon")


def _by_parties(found: Sequence[Mean]) -> Iterator[str]:
    yield f"## By the number of parties, epsilon {PAPERS_EPSILON}"
    own = [one for one in found if one.option("epsilon") == PAPERS_EPSILON and one.data in DATA and not one.is_of_views]
    yield from _pairs_and_triples(own, "parties")


def _pairs_and_triples(found: Sequence[Mean], axis: str) -> Iterator[str]:
    places = sorted({one.option(axis) for one in found}, key=float)
    for data in DATA:
        rows = []
        for label in METHODS.values():
            own = [one for one in found if (one.data, one.label) == (data, label)]
            cells = [
                f"{pairs} ({_of(own, '3-way', **{axis: place})})"
                if (pairs := _of(own, "2-way", **{axis: place})) != "-"
                else "-"
                for place in places
            ]
            rows.append([label, *cells])
        measured = [row for row in rows if set(row[1:]) != {"-"}]
        yield _table([data, *(f"{axis} {place}" for place in places)], measured)


def _wide(found: Sequence[Mean]) -> Iterator[str]:
    yield "## Marginals of 2 to 8 attributes, one party with all rows"
    for data in sorted({one.data for one in found if WIDE in one.data}):
        own = [one for one in found if one.data == data]
        places = [(epsilon, ways) for epsilon in _values(own, "epsilon") for ways in (2, 4, 6, 8)]
        rows = [
            [label, *(_of([one for one in own if one.label == label], f"{k}-way", epsilon=e) for e, k in places)]
            for label in dict.fromkeys(one.label for one in own)
        ]
        yield _table([data.removesuffix(WIDE), *(f"{ways}-way, epsilon {epsilon}" for epsilon, ways in places)], rows)


def _views(found: Sequence[Mean]) -> Iterator[str]:
    yield "## Pairs of Adult's bits from views alone, one party with all rows"
    own = [one for one in found if one.is_of_views and one.data == "adult"]
    epsilons = _values(own, "epsilon")
    rows = [
        [label, *(_of([one for one in own if one.label == label], "2-way", epsilon=epsilon) for epsilon in epsilons)]
        for label in dict.fromkeys(one.label for one in own)
    ]
    yield _table(["", *(f"epsilon {epsilon}" for epsilon in epsilons)], rows)


def _classified(found: Sequence[Mean]) -> Iterator[str]:
    yield "## Two parties and classifiers"
    yield "Share of held-out real rows about which a linear SVM is wrong that was trained on synthetic rows."
    own = [one for one in found if one.data == CLASSIFIED and one.quantity.startswith("wrong")]
    places = [(target, e) for target in dict.fromkeys(one.quantity for one in own) for e in _values(own, "epsilon")]
    rows = [
        [label, *(_of([one for one in own if one.label == label], target, epsilon=e) for target, e in places)]
        for label in dict.fromkeys(one.label for one in own)
    ]
    yield _table(["", *(f"{target.removeprefix('wrong about ')}, epsilon {e}" for target, e in places)], rows)


def _runs(found: Sequence[Mean], of_views: bool) -> str:
    return " to ".join(map(str, sorted({one.runs for one in found if one.is_of_views == of_views}))) or "none"


def _values(found: Sequence[Mean], axis: str) -> list[str]:
    return sorted({one.option(axis) for one in found}, key=float)


def _of(found: Sequence[Mean], quantity: str, **where: str) -> str:
    for one in found:
        if one.quantity == quantity and all(one.option(name) == value for name, value in where.items()):
            return f"{one.mean:.4f}"
    return "-"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
