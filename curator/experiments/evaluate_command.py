"""`subn evaluate` on the command line.

It does not know how anything is measured (`curator.experiments.evaluation`), and imports that only to measure.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

from curator.rendering.output import say


def add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare a synthetic table with the real rows: the average total variation distance of all marginals of a "
        "few attributes, and the error rate of classifiers, trained on either table, on held-out real rows (one in "
        "five). Classifiers need the extra `experiments`. The results are computed from the real rows without "
        "noise: they are only for holders of all rows, never to be published."
    )
    parser.epilog = "Exit codes: 0 done, 1 failed, 2 the command, the schema or a table cannot work."
    parser.add_argument("--real", type=Path, required=True, metavar="T.csv[.gz]", help="the real rows")
    parser.add_argument("--synthetic", type=Path, required=True, metavar="S.csv[.gz]", help="the synthetic rows")
    parser.add_argument("--schema", type=Path, required=True, metavar="S.json", help="the schema of both")
    parser.add_argument(
        "--ways",
        type=_numbers,
        default=(2,),
        metavar="2,3",
        help="attributes in a marginal (2); of many marginals, a sample is measured",
    )
    parser.add_argument(
        "--classify",
        type=_target,
        action="append",
        default=[],
        metavar="NAME[=VALUE,...]",
        help="predict this attribute, or whether its value is one of these; may be repeated",
    )
    parser.add_argument(
        "--without",
        type=_values,
        default=(),
        metavar="NAME,...",
        help="attributes that classifiers do not see, because they give the answer away",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    parser.set_defaults(run=_evaluate)


def _evaluate(chosen: argparse.Namespace) -> int:
    from curator.experiments.evaluation import Evaluation, evaluate

    found = evaluate(
        Evaluation(chosen.real, chosen.synthetic, chosen.schema, chosen.ways, tuple(chosen.classify), chosen.without)
    )
    return say(chosen, found, *_summary(found), indent=1)


def _summary(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['rows']['real']:,} real rows, {found['rows']['synthetic']:,} synthetic rows"]
    lines.append("total variation distance (0 equal, 1 disjoint)")
    for one in found["distances"]:
        which = "all" if one["measured"] == one["of"] else f"{one['measured']:,} of"
        what = f"over {which} {one['of']:,} marginals of {one['ways']}, largest {one['largest']:.4f}"
        lines.append(f"  average {one['average']:.4f} {what}")
    if found["classification"]:
        lines.append("error rate on real test rows: trained on synthetic rows | trained on real rows | majority class")
    for rates in found["classification"]:
        figures = " | ".join(f"{rates[name]:.4f}" for name in ("synthetic", "real", "majority"))
        lines.append(f"  {figures}  {rates['classifier']}: {rates['target']}")
    return lines


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _values(text: str) -> tuple[str, ...]:
    """Split a list of values at commas. A value with a comma stands in double quotes."""
    try:
        return tuple(next(csv.reader([text], strict=True), []))
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of values: {error}") from None


def _target(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, group = text.partition("=")
    return name, _values(group) if group else ()
