"""Options of a command that say how rows are divided among made-up parties.

It does not know how they are divided (`curator.experiments.partition`).
"""

from typing import Any

WAYS = "random|file:COLUMN|sorted:ATTRIBUTE|largest:SHARE"


def add_division_options(group: Any) -> None:
    group.add_argument(
        "--parties", type=int, metavar="K", help="number of parties (3, or the number of values of the column)"
    )
    group.add_argument(
        "--partition",
        default="random",
        metavar=WAYS,
        help="how rows are divided: at random, by a column of the file, in equal parts sorted by an attribute, or "
        "with this share of the rows, such as 0.8, at one party (%(default)s)",
    )
