"""Options of a command that say how rows are divided among made-up parties.

It does not know how they are divided (`curator.experiments.partition`).
"""

from typing import Any

WAYS = "random|file:COLUMN|sorted:ATTRIBUTE|dirichlet:ATTRIBUTE:BETA|largest:SHARE"


def add_division_options(group: Any) -> None:
    group.add_argument(
        "--parties",
        type=int,
        metavar="K",
        help="number of parties (3, or the number of values of the column); 1 is a central baseline",
    )
    group.add_argument(
        "--partition",
        default="random",
        metavar=WAYS,
        help="how rows are divided: at random, by a column of the file, in equal parts sorted by an attribute, with "
        "each value of an attribute in shares of its own for the parties (the less alike, the smaller beta: 0.1, 0.5), "
        "or with this share of the rows, such as 0.8, at one party; also sorted:ATTRIBUTE,largest:SHARE (%(default)s)",
    )
