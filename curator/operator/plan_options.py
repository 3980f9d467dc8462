"""The options of a plan, alike for experiments and for real runs: what the operator wishes instead of the preset.

It does not know what is done with them.
"""

import argparse
from typing import Any

from protocol.exact import exact


def _fraction(text: str) -> Any:
    try:
        return exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _fractions(text: str) -> Any:
    return tuple(_fraction(part) for part in text.split(","))


_WISHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--privacy", {"choices": ("pure", "zcdp"), "help": "pure: a guarantee without delta (default); zcdp: less noise"}),
    ("--delta", {"type": _fraction, "metavar": "D", "help": "of --privacy zcdp, below one over the rows (1e-9)"}),
    ("--insiders", {"type": int, "metavar": "T", "help": "curious parties that may pool what they know (1)"}),
    ("--noise", {"choices": ("selected", "distributed", "local"), "help": "whose noise stays in the sums"}),
    ("--update", {"choices": ("accumulate", "replace", "joint", "guided"), "help": "how phase 3 updates the network"}),
    ("--rounds", {"type": int, "metavar": "R", "help": "rounds of --update joint"}),
    ("--encoding", {"choices": ("native", "binary", "gray", "hierarchical"), "help": "attributes to variables"}),
    ("--score", {"choices": ("I", "F", "R", "M"), "help": "how phase 2 scores a parent set"}),
    ("--choice", {"choices": ("permute-and-flip", "exponential"), "help": "how phase 2 picks one"}),
    (
        "--split",
        {"type": _fractions, "metavar": "E1,E2,E3,E4", "help": "epsilon's parts, exact; with zcdp rho's proportions"},
    ),
    ("--theta", {"type": _fraction, "metavar": "X", "help": "information over noise in a table"}),
    ("--degree", {"type": int, "metavar": "D", "help": "largest number of parents, instead of theta's"}),
    ("--rows", {"type": int, "metavar": "N", "help": "rows of the synthetic table (as many as the real ones)"}),
    ("--key-bits", {"type": int, "metavar": "B", "help": "size of the Paillier key (3072)"}),
)


def add_plan_options(group: Any) -> None:
    group.add_argument("--epsilon", required=True, metavar="E", help="what each party spends at most: 0.8 or 4/5")
    methods = ("dp-subn", "dp-ccbn", "independent")
    group.add_argument("--method", choices=methods, default="dp-subn", help="(%(default)s)")
    group.add_argument("--preset", choices=("recommended", "paper"), default="recommended", help="(%(default)s)")
    for name, settings in _WISHES:
        group.add_argument(name, **settings)


def wishes(chosen: argparse.Namespace) -> dict[str, Any]:
    """What was asked for besides epsilon, method and preset; None where the preset decides."""
    names = [name.removeprefix("--").replace("-", "_") for name, _ in _WISHES]
    return {name: getattr(chosen, name) for name in names}
