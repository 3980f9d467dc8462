"""Scores of a classifier that is trained on one table and predicts a column of another; needs scikit-learn.

It does not know which table is real. Its scores on real rows carry no noise: they never leave the data owner.
"""

import warnings
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from protocol.tables.domain import Codes

_MOST_ROWS = 20_000  # for training; more rows take long and change little
_ROUNDS = 200


class Scores(TypedDict):
    """Shares of the tested own rows that were predicted correctly."""

    tested: int
    most_frequent: float  # by always predicting the most frequent value of the other half of the own rows
    from_own: float  # by a model trained on the other half of the own rows
    from_synthetic: float  # by a model trained on the synthetic table


def scores(own: Sequence[Codes], synthetic: Sequence[Codes], sizes: Sequence[int], target: int) -> Scores | None:
    """Score the models on every second own row; None if there is nothing to learn."""
    learned = [column[0::2][:_MOST_ROWS] for column in own]
    tested = [column[1::2][:_MOST_ROWS] for column in own]
    made = [column[:_MOST_ROWS] for column in synthetic]
    if any(len(np.unique(table[target])) < 2 for table in (learned, made)) or not len(tested[0]):
        return None
    frequent = np.bincount(learned[target]).argmax()
    return Scores(
        tested=len(tested[0]),
        most_frequent=float((tested[target] == frequent).mean()),
        from_own=_score(learned, tested, sizes, target),
        from_synthetic=_score(made, tested, sizes, target),
    )


def _score(learned: Sequence[Codes], tested: Sequence[Codes], sizes: Sequence[int], target: int) -> float:
    """Score a logistic regression on one column per value; it needs no randomness."""
    # Imported here, because scikit-learn is an optional extra and takes a second to load.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    others = [i for i in range(len(sizes)) if i != target]
    encoder = OneHotEncoder(categories=[np.arange(sizes[i]) for i in others])
    model = make_pipeline(encoder, LogisticRegression(max_iter=_ROUNDS, tol=1e-3))
    # Privacy: warnings about the fit depend on rows, so none is logged. One thread: the party has other work.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        model.fit(_rows(learned, others), learned[target])
        return float((model.predict(_rows(tested, others)) == tested[target]).mean())


def _rows(columns: Sequence[Codes], others: Sequence[int]) -> Codes:
    return np.stack([columns[i] for i in others], axis=1)
