"""Utility, measured and written down: runs the grid of utility.toml and writes utility.md with its figures.

    python -m tests.benchmarks.utility [--workers N]

It does not know the central methods (`tests.benchmarks.peers`), only what they reached.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from curator.experiments.sweep.command import Bar
from curator.experiments.sweep.figures import PREDICTED, Mean, draw, means, write_means
from curator.experiments.sweep.grid import read_grid
from curator.experiments.sweep.runner import run_sweep
from protocol.forecast.error import FACTOR
from tests.benchmarks.utility_data import DATA, ROOT

HERE = Path(__file__).parent
GRID, DOCUMENT, FIGURES = HERE / "utility.toml", HERE / "utility.md", HERE / "utility"
PEERS = HERE / "peers" / "results.jsonl"
OUT = ROOT / "build" / "utility"
MADE_AT = OUT / "commit"  # of the code that made the results kept there

SUBN, GUIDED, PAPER, INDEPENDENT, CCBN = "dp-subn", "guided", "dp-subn, paper", "Independent", "DP-CCBN"
SELECTED, ZCDP = f"{SUBN}, selected", f"{GUIDED}, zcdp"
TRUSTING, ZCDP_TRUSTING = f"{GUIDED}, insiders = 0", f"{ZCDP}, insiders = 0"
ALONE = f"{ZCDP}, one party"
BASELINES = (INDEPENDENT, CCBN)
OURS = (SUBN, GUIDED)
MAIN = (INDEPENDENT, CCBN, PAPER, SUBN, GUIDED)
RUNS = 2  # of a setting, where no number stands beside it
CENTRAL = {"mst": "MST, central", "aim": "AIM, central", "privbayes": "PrivBayes, central"}
PAIRS = "2-way"
EPSILONS = ("0.2", "0.8", "1.6")
PLACE = ("epsilon", "parties", "partition")
# Figures that the document shows: by epsilon for three parties, by the number of parties, and pairs from views.
SHOWN = (
    "parties-3-partition-random",
    "adult-epsilon-0.2-partition-random",
    "nltcs-epsilon-0.2-partition-random",
    "views",
)
# The grid's names for adult with classifiers, and by the paper's measure.
CLASSIFIED, BY_BOOSTING = "adult-classified", " by gradient boosting"
BITS = "adult-bits"
ONCE = "paper, phase 3 charged once"
# The budgets that plans need for phase 3 to get what the paper's price of 0.2 and 0.8 gives it.
ONCE_AT = {"0.3": "0.2", "1.2": "0.8"}
# Measured elsewhere with the package `mbi`, and PrivBayes as the better of two packages has it; (epsilon, 10^-9).
ELSEWHERE = ("AIM", "MST", "PrivBayes")
PUBLISHED: dict[tuple[str, str], tuple[float | None, float | None, float | None]] = {
    ("adult", "0.2"): (0.0506, 0.0567, 0.0992),
    ("adult", "0.8"): (0.0256, 0.0391, 0.0526),
    ("adult", "1.6"): (0.0180, 0.0362, 0.0411),
    ("nltcs", "0.2"): (None, 0.089, 0.057),
    ("nltcs", "0.8"): (0.0039, 0.084, 0.028),
    ("nltcs", "1.6"): (None, None, 0.024),
    ("acs", "0.2"): (None, 0.0137, 0.021),
    ("acs", "0.8"): (0.0031, 0.0128, 0.016),
    ("acs", "1.6"): (None, None, 0.015),
}
AIMS_TRIPLES = ("0.0928", "0.0529", "0.0415")  # of Adult, by epsilon


class Book:
    """The means, to be asked for by data, label, quantity and options."""

    def __init__(self, found: Sequence[Mean]) -> None:
        self._all = found
        self.means = [one for one in found if one.data not in (CLASSIFIED, BITS)]

    def find(self, data: str, label: str, quantity: str = PAIRS, **options: str) -> Mean | None:
        wanted = {"parties": "3", "partition": "random"} | options
        for one in self._all:
            if (one.data, one.label, one.quantity) == (data, label, quantity) and all(
                one.option(name) == value for name, value in wanted.items()
            ):
                return one
        return None

    def of(self, data: str) -> list[Mean]:
        return [one for one in self._all if one.data == data]

    def values(self, name: str, **where: str) -> list[str]:
        found = {one.option(name) for one in self.means if all(getattr(one, key) == v for key, v in where.items())}
        return sorted(found - {""}, key=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", action="store_true", help="only see whether the tables are there")
    chosen = parser.parse_args()
    if absent := [str(source.table) for source in DATA.values() if not source.table.is_file()]:
        sys.exit(f"bench-utility needs public tables that are not part of the project: {absent[0]} is not there")
    if chosen.check:
        return
    if MADE_AT.exists() and (made_at := MADE_AT.read_text(encoding="utf-8")) != _commit():
        sys.exit(f"the results in {OUT} are of commit {made_at}: delete that folder to measure commit {_commit()}")
    OUT.mkdir(parents=True, exist_ok=True)
    MADE_AT.write_text(_commit(), encoding="utf-8")
    records = run_sweep(read_grid(GRID), OUT, chosen.workers, Bar(sys.stderr).show)
    write(records, peers())


def write(records: Sequence[dict[str, Any]], central: Sequence[Mean]) -> None:
    found = means(records)
    write_means(OUT / "means.csv", found)
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("*.png"):
        old.unlink()
    shown = [one for one in Book(found).means if one.label in (*MAIN, SELECTED, ZCDP) or one.is_of_views]
    drawn = draw([*shown, *central], FIGURES)
    for path in drawn:
        if not any(kept in path.name for kept in SHOWN):
            path.unlink()
    text = "\n\n".join(document(Book([*found, *central]), records, MADE_AT.read_text(encoding="utf-8"))) + "\n"
    DOCUMENT.write_text(text, encoding="utf-8")


def peers() -> list[Mean]:
    """What the central methods reached, in the form of our own means, so that it can be drawn beside them."""
    records = [json.loads(line) for line in PEERS.read_text(encoding="utf-8").splitlines()] if PEERS.exists() else []
    found = []
    for record in records:
        setting = record["settings"]
        wrong = {
            f"wrong about {one['target'].partition(' in ')[0]}{suffix}": one["synthetic"]
            for classifier, suffix in (("linear SVM", ""), ("gradient boosting", BY_BOOSTING))
            for one in record["classification"]
            if one["classifier"] == classifier
        }
        found.append(
            {
                "data": setting["data"],
                "options": {"epsilon": setting["epsilon"], "central": setting["method"]},
                "label": CENTRAL[setting["method"]],
                "outcome": {"measured": record["distances"] | wrong, "seconds": record["cpu_seconds"]},
            }
        )
    return means(found)


def document(book: Book, records: Sequence[dict[str, Any]], commit: str = "") -> Iterator[str]:
    yield "# Utility"
    yield (
        f"Written by `make bench-utility` from commit {commit}; do not edit. Runs are simulated with the exact "
        "distribution of the noise and without cryptography (`subn sweep`), 3 parties, rows divided at random, one "
        "insider, pure epsilon, noise distributed, unless it says otherwise. Errors are average total variation "
        f"distances over all marginals of two attributes: mean ± standard error, over {RUNS} runs where no number "
        "stands in brackets; an empty cell was not run. "
        "Synthetic tables have as many rows as the real ones. Everything here is measured against public tables."
    )
    yield from _divisions(book)
    yield from _best(book)
    yield from _errors(book)
    yield from _central(book)
    yield from _figures()
    yield from _classification(book)
    yield from _claims(book)
    yield from _papers_measure(book)
    yield from _parties(book)
    yield from _updates(book)
    yield from _ablation(book)
    yield from _predictions(book)
    yield from _refused(records)


def _divisions(book: Book) -> Iterator[str]:
    """Errors where parties differ, first: that is how parties are."""
    yield "## Parties that differ"
    yield (
        "Rows sorted by an attribute and cut into equal parts; dealt out value by value in shares from a Dirichlet "
        "distribution (the smaller beta, the less parties are alike); four fifths at one party; and two of these at "
        "once. In brackets: what the error is of the error of random division."
    )
    places = sorted(
        {
            (list(DATA).index(one.data), one.option("parties"), one.option("partition"))
            for one in book.means
            if one.label in OURS and one.quantity == PAIRS and one.option("partition") not in ("", "random")
        }
    )
    rows = []
    for data, parties, partition in places:
        name = list(DATA)[data]
        for label in OURS:
            cells = [_beside_random(book, name, label, epsilon, parties, partition) for epsilon in EPSILONS]
            rows.append([name, parties, partition, label, *cells])
    yield _table(["data", "K", "division", "", *(f"epsilon {epsilon}" for epsilon in EPSILONS)], rows)


def _beside_random(book: Book, data: str, label: str, epsilon: str, parties: str, partition: str) -> str:
    found = book.find(data, label, epsilon=epsilon, parties=parties, partition=partition)
    random = book.find(data, label, epsilon=epsilon, parties=parties)
    return "" if found is None or random is None else f"{_cell(found)} ({found.mean / random.mean:.2f})"


def _best(book: Book) -> Iterator[str]:
    """How far the paper's phases are from the better method, everywhere."""
    for label in (SUBN, SELECTED):
        ratios = [
            own.mean / min(own.mean, other.mean)
            for own in book.means
            if own.label == label and own.quantity == PAIRS
            for other in [book.find(own.data, GUIDED, **{k: v for k, v in own.options if k in PLACE})]
            if other is not None
        ]
        if ratios:
            yield (
                f"In {len(ratios)} settings of table, epsilon, division and K, the error of {label} is "
                f"{min(ratios):.2f} to {max(ratios):.2f} times that of the better of the two methods; at most 1.15 "
                f"times in {sum(ratio <= 1.15 for ratio in ratios)}."
            )


def _errors(book: Book) -> Iterator[str]:
    yield "## Error by epsilon"
    labels = _measured(book)
    rows = []
    for data in DATA:
        for epsilon in book.values("epsilon", data=data, quantity=PAIRS):
            cells = [_cell(book.find(data, label, epsilon=epsilon)) for label in labels]
            rows.append([data, epsilon, *cells])
    yield _table(["data", "epsilon", *labels], rows)
    yield (
        "The columns with zcdp and central methods promise less: (epsilon, 10^-9)-differential privacy instead of pure "
        "epsilon. The central ones see all rows in one place. They come from the package `dpmm` with its default "
        "settings, whose PrivBayes measures with Gaussian noise and fits a graphical model."
    )


def _central(book: Book) -> Iterator[str]:
    """Ours, promising more and promising the same, beside published figures of methods that see all rows."""
    labels = (GUIDED, TRUSTING, ZCDP, ZCDP_TRUSTING)
    rows = []
    for (data, epsilon), published in PUBLISHED.items():
        ours = [book.find(data, label, epsilon=epsilon) for label in labels]
        if any(ours):
            said = ["" if error is None else f"{error:.4f}" for error in published]
            aim, best = published[0], ours[-1]
            ratio = "" if aim is None or best is None else f"{best.mean / aim:.2f}"
            alone = book.find(data, ALONE, epsilon=epsilon, parties="1")
            rows.append([data, epsilon, *map(_cell, [*ours, alone]), *said, ratio])
    if not rows:
        return
    yield "## Beside methods that see all rows"
    yield (
        "The columns of AIM, MST and PrivBayes are not from here: the first two were measured elsewhere with the "
        "package `mbi`, one to three seeds, the third is the better of two packages. They promise (epsilon, 10^-9), "
        "and so does dp-subn with zcdp; pure epsilon is more, and so is a promise that holds although one party is "
        "curious. AIM and MST count a person as protected if nobody can tell whether the row is there; dp-subn if "
        "nobody can tell which values it holds, as the number of rows is public. At the same epsilon this takes noise "
        "of twice the variance in every count (in `federations.md`: both with the same noise)."
    )
    ours = ["one insider, pure", "none, pure", "one insider, zcdp", "none, zcdp", "one party, zcdp"]
    yield _table(["data", "epsilon", *ours, *ELSEWHERE, "none, zcdp / AIM"], rows)
    triples = [book.find(BITS, ZCDP_TRUSTING, "3-way", epsilon=epsilon) for epsilon in EPSILONS]
    if any(triples):
        yield "Over all marginals of three attributes of Adult, zcdp without insiders:"
        ours_and_aims = [["none, zcdp", *map(_cell, triples)], ["AIM", *AIMS_TRIPLES]]
        yield _table(["", *(f"epsilon {epsilon}" for epsilon in EPSILONS)], ours_and_aims)


def _measured(book: Book) -> list[str]:
    """The methods of the columns, without those that were not run at all."""
    known = {one.label for one in book.means}
    return [label for label in (*MAIN, SELECTED, ZCDP, *CENTRAL.values()) if label in known]


def _figures() -> Iterator[str]:
    yield "## Figures"
    yield (
        "Like figures 4 (error by epsilon), 5 (by the number of parties), 7 (pairs from views) and 8 (bytes) of the "
        "DP-SUBN paper. Bars are standard errors. Bytes are those of all messages after joining, with 3072-bit keys "
        "where sums are encrypted."
    )
    for path in sorted(FIGURES.glob("*.png")):
        yield f"![{path.stem.replace('-', ' ')}](utility/{path.name})"


def _classification(book: Book) -> Iterator[str]:
    yield "## Classification on adult"
    yield (
        "Share of held-out real rows (one in five) about which a classifier is wrong that was trained on synthetic "
        "rows: salary, and post-secondary degree without `education-num`. The synthetic tables were made from all "
        "rows, whose influence on the test differential privacy bounds."
    )
    labels = _measured(book)
    for classifier, suffix in (("linear SVM", ""), ("gradient boosting", BY_BOOSTING)):
        rows = [
            [target, epsilon]
            + [_cell(_wrong(book, label, f"wrong about {target}{suffix}", epsilon)) for label in labels]
            for target in ("income", "education")
            for epsilon in EPSILONS
        ]
        known = [row for row in rows if any(row[2:])]
        yield f"By {classifier}:"
        yield _table(["about", "epsilon", *labels], known)
        yield _baselines(classifier)
    yield from _classification_by_division(book)


def _classification_by_division(book: Book) -> Iterator[str]:
    divisions = sorted({one.option("partition") for one in book.of(CLASSIFIED) if one.label == ZCDP_TRUSTING})
    if not divisions:
        return
    yield (
        "Where parties differ, by linear SVM, zcdp without insiders at epsilon 0.8 (AIM, with all rows in one place: "
        "income .158, education .212):"
    )
    rows = [
        [target]
        + [
            _cell(book.find(CLASSIFIED, ZCDP_TRUSTING, f"wrong about {target}", epsilon="0.8", partition=division))
            for division in divisions
        ]
        for target in ("income", "education")
    ]
    yield _table(["about", *divisions], rows)


def _wrong(book: Book, label: str, quantity: str, epsilon: str) -> Mean | None:
    return book.find("adult" if label in CENTRAL.values() else CLASSIFIED, label, quantity, epsilon=epsilon)


def _baselines(classifier: str) -> str:
    for line in PEERS.read_text(encoding="utf-8").splitlines() if PEERS.exists() else []:
        rates = json.loads(line)["classification"]
        said = [
            f"{one['target'].partition(' in ')[0]} {one['real']:.3f} and {one['majority']:.3f}"
            for one in rates
            if one["classifier"] == classifier
        ]
        if said:
            return f"Trained on real rows, and always saying the commonest: {'; '.join(said)}."
    return ""


def _claims(book: Book) -> Iterator[str]:
    yield "## What the paper claims, and what holds"
    yield (
        "The paper has DP-SUBN below Independent and DP-CCBN everywhere, with three things that are not granted here: "
        "phase 3 charged once although the first party's rows are exposed K times, one share of noise that a curious "
        "party can take out (insiders = 0), and an Independent baseline without PrivBayes's better scores. `dp-subn, "
        "paper` is the paper's method as printed, with its true price."
    )
    yield "Least and largest ratio over all settings that both were run in, and in how many of them ours is below."
    rows = [row for label in (PAPER, SUBN, SELECTED, GUIDED) for row in _comparisons(book, label)]
    yield _table(["method", "data", *(f"error / {label}'s" for label in BASELINES)], rows)


def _comparisons(book: Book, ours: str) -> Iterator[list[str]]:
    for data in DATA:
        cells = []
        for label in BASELINES:
            ratios = [
                own.mean / other.mean
                for own in book.means
                if (own.data, own.label, own.quantity) == (data, ours, PAIRS)
                for other in [book.find(data, label, **{k: v for k, v in own.options if k in PLACE})]
                if other is not None
            ]
            below = sum(ratio < 1 for ratio in ratios)
            cells.append(f"{min(ratios):.2f} to {max(ratios):.2f} ({below} of {len(ratios)})" if ratios else "")
        if any(cells):
            yield [ours, data, *cells]


def _papers_measure(book: Book) -> Iterator[str]:
    if book.find(BITS, SUBN, f"{PAIRS} of bits", epsilon="0.2") is None:
        return
    yield "## The paper's own measure, adult"
    yield (
        "Marginals over the bits of all attributes (ceil(log2 size) of each), of which most hold one value nearly "
        "always, so that errors are smaller than over attributes. By epsilon, K = 3 (the "
        "paper's figure 4). Of more than 2,000 marginals a sample is measured."
    )
    for ways in (2, 3, 4):
        quantity = f"{ways}-way of bits"
        epsilons = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
        rows = [
            [label, *(_cell(book.find(BITS, label, quantity, epsilon=epsilon)) for epsilon in epsilons)]
            for label in (INDEPENDENT, CCBN, PAPER, SUBN, GUIDED)
        ]
        yield _table([f"{ways}-way", *(f"epsilon {epsilon}" for epsilon in epsilons)], rows)
    yield (
        "Why the printed method is not below the others: one change at a time. `charged once` gives phase 3 what the "
        "paper's price gives it (its theorem 5 counts rows once that are released K times); a row released once is "
        "the cheapest honest update. At epsilon 0.2 no pair is useful by the paper's own rule, so that scores change "
        "nothing there and the table is that of independent bits."
    )
    labels = [PAPER, *sorted({one.label for one in book.of(BITS) if one.label.startswith("paper, ")}), SUBN]
    rows = []
    for label in labels:
        places = [(price, label) for price in (ONCE_AT if label == ONCE else ONCE_AT.values())]
        bits, attributes = (
            [_cell(book.find(BITS, label, quantity, epsilon=price)) for price, label in places]
            for quantity in (f"{PAIRS} of bits", PAIRS)
        )
        rows.append([label, *bits, *attributes])
    header = [f"{what}, epsilon {price}" for what in ("bits", "attributes") for price in ONCE_AT.values()]
    yield _table(["", *header], rows)


def _parties(book: Book) -> Iterator[str]:
    yield "## Error by the number of parties, adult"
    counts = book.values("parties", data="adult", quantity=PAIRS)
    rows = []
    for epsilon in book.values("epsilon", data="adult", quantity=PAIRS):
        for label in MAIN:
            found = [book.find("adult", label, epsilon=epsilon, parties=count) for count in counts]
            if sum(one is not None for one in found) > 1:
                rows.append([label, epsilon, *map(_cell, found)])
    yield _table(["", "epsilon", *(f"K = {k}" for k in counts)], rows)
    yield "Bytes that all send together, after joining, with 3072-bit keys where sums are encrypted, at epsilon 0.2:"
    rows = []
    for label in MAIN:
        sent = [book.find("adult", label, "bytes", epsilon="0.2", parties=k) for k in counts]
        rows.append([label, *("" if one is None else f"{one.mean:,.0f}" for one in sent)])
    yield _table(["", *(f"K = {k}" for k in counts)], rows)


def _updates(book: Book) -> Iterator[str]:
    yield "## How phase 3 updates the network, adult, insiders = 0"
    yield "`replace` is the paper's; its first party pays for phase 3 as often as there are parties."
    groups: dict[str, dict[str, Mean]] = defaultdict(dict)
    for one in book.means:
        chosen = dict(one.options)
        if one.quantity == PAIRS and "update" in chosen and chosen.get("insiders") == "0":
            groups[chosen["update"]][chosen["epsilon"]] = one
    epsilons = sorted({epsilon for group in groups.values() for epsilon in group}, key=float)
    rows = [[update, *(_cell(group.get(epsilon)) for epsilon in epsilons)] for update, group in groups.items()]
    yield _table(["update", *(f"epsilon {epsilon}" for epsilon in epsilons)], rows)


def _ablation(book: Book) -> Iterator[str]:
    """Entries of the grid whose label begins with "without" switch one part of dp-subn off."""
    labels = sorted({one.label for one in book.means if one.label.startswith("without ")})
    if not labels:
        return
    yield "## Each part of dp-subn switched off alone"
    yield "Error, and in brackets what it is of the error with this part."
    places = sorted({(one.data, one.option("epsilon")) for one in book.means if one.label in labels})
    rows = []
    for label in labels:
        cells = []
        for data, epsilon in places:
            off, on = (book.find(data, each, epsilon=epsilon) for each in (label, SUBN))
            cells.append("" if off is None or on is None else f"{_cell(off)} ({off.mean / on.mean:.2f})")
        rows.append([label, *cells])
    yield _table(["", *(f"{data}, {epsilon}" for data, epsilon in places)], rows)


def _predictions(book: Book) -> Iterator[str]:
    """Of all settings of DP-SUBN, DP-CCBN and Independent that were run as such."""
    measured = [
        one for one in book.means if one.quantity == PAIRS and not one.is_of_views and one.option("central") == ""
    ]
    if not measured:
        return
    yield "## Predicted and measured"
    yield (
        f"What each plan predicts of its error, from public numbers alone, over what was measured: meant to lie within "
        f"{FACTOR} either way. The constants were set on adult and nltcs; acs and retail were held out, but for one. "
        "Without a number: the plan says that public numbers do not tell it, and why "
        "(`protocol/forecast/prediction.md`)."
    )
    expected = {(one.data, one.options, one.label): one.mean for one in book.means if one.quantity == PREDICTED}
    ratios = {
        one: expected[key] / one.mean for one in measured if (key := (one.data, one.options, one.label)) in expected
    }
    header = ["data", "method", "settings", "predicted / measured", "outside", "without a number"]
    yield _table(header, _ratio_rows(measured, ratios))
    yield _within(measured, ratios)


def _ratio_rows(measured: Sequence[Mean], ratios: dict[Mean, float]) -> list[list[str]]:
    """By table and method: how many settings, the range of ratios, how many outside and how many without a number."""
    groups: dict[tuple[str, str], list[Mean]] = defaultdict(list)
    for one in sorted(measured, key=lambda one: (list(DATA).index(one.data), one.label or "without a label")):
        groups[one.data, one.label or "updates, insiders = 0"].append(one)
    rows = []
    for place, ones in groups.items():
        known = [ratios[one] for one in ones if one in ratios]
        span = f"{min(known):.2f} to {max(known):.2f}" if known else ""
        outside = sum(not 1 / FACTOR <= ratio <= FACTOR for ratio in known)
        rows.append([*place, str(len(ones)), span, str(outside), str(len(ones) - len(known))])
    return rows


def _within(measured: Sequence[Mean], ratios: dict[Mean, float]) -> str:
    if not ratios:
        return f"Not predicted: all {len(measured)}."
    inside = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios.values())
    worst = max(ratios.values(), key=lambda ratio: max(ratio, 1 / ratio))
    return (
        f"Within {FACTOR}: {inside} of {len(ratios)} settings with a prediction; the worst is {worst:.2f}. Not "
        f"predicted: {len(measured) - len(ratios)} of {len(measured)}."
    )


def _refused(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    refused = sorted({record["outcome"]["refused"] for record in records if "refused" in record["outcome"]})
    if refused:
        yield "## Plans that were refused"
        yield "\n".join(f"- {sentence}" for sentence in refused)


def _cell(one: Mean | None) -> str:
    if one is None:
        return ""
    error = "" if one.error is None else f" ± {one.error:.4f}"
    return f"{one.mean:.4f}{error}" + ("" if one.runs == RUNS else f" ({one.runs})")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _commit() -> str:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
