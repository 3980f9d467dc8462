"""Error rates on real rows of classifiers trained on synthetic rows: linear SVM and gradient boosting.

It does not know files, or how the synthetic rows were made. Its results are not private.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crypto.randomness import Stream
from protocol.errors import OperatorError
from protocol.tables.attributes import Listed, Numeric, quoted
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

CLASSIFIERS = ("linear SVM", "gradient boosting")
TESTED = 5  # one real row in this many is held out for the test
_MOST_CLASSES = 100
_LISTED_EACH = 64  # categories at most that get a column each; an attribute with more is used as a number
_MOST_UNORDERED = 255  # categories at most that the boosting library treats as unordered


@dataclass(frozen=True)
class Target:
    """The quantity to predict: an attribute, or whether its value is in a group."""

    name: str
    attribute: int
    group: tuple[int, ...] = ()

    def of(self, codes: Sequence[Codes]) -> Codes:
        column = codes[self.attribute]
        return np.isin(column, self.group) if self.group else column


@dataclass(frozen=True)
class Misclassified:
    """Error rates of a classifier, as shares of the held-out real rows."""

    target: str
    classifier: str
    synthetic: float
    real: float
    majority: float


def target_of(schema: Schema, name: str, values: Sequence[str]) -> Target:
    """Return a target. `values` name its group; without them, every category is a class."""
    if name not in schema.names:
        raise OperatorError(f"cannot classify {quoted(name)}: the schema has no such attribute; correct the name")
    index = schema.names.index(name)
    attribute = schema.attributes[index]
    if not values:
        if attribute.size > _MOST_CLASSES:
            what = f"it has {attribute.size} categories, at most {_MOST_CLASSES} can be classes"
            raise OperatorError(f"cannot classify {quoted(name)}: {what}; name a group of its values")
        return Target(name, index)
    if not isinstance(attribute, Listed):
        what = "number" if isinstance(attribute, Numeric) else "date"
        raise OperatorError(f"cannot group {quoted(name)}: it is a {what}; only listed values can be grouped")
    known = attribute.spelled
    if (unknown := next((value for value in values if value not in known), None)) is not None:
        raise OperatorError(f"cannot group {quoted(name)}: {quoted(unknown)} is not one of its values; correct it")
    return Target(f"{name} in {', '.join(values)}", index, tuple(sorted({known[value] for value in values})))


class Exam:
    """Held-out real rows, and the target to predict for them."""

    def __init__(
        self, schema: Schema, real: Sequence[Codes], target: Target, without: Sequence[int], stream: Stream
    ) -> None:
        self._schema, self._target = schema, target
        self._used = [i for i in range(len(schema.names)) if i != target.attribute and i not in without]
        if not self._used or len(real[0]) < TESTED:
            raise OperatorError(f"cannot classify: at least one other attribute and {TESTED} real rows are needed")
        order = np.argsort(stream.words64(len(real[0])), kind="stable")
        self._tested = [column[order[: len(order) // TESTED]] for column in real]
        self.others = [column[order[len(order) // TESTED :]] for column in real]

    def wrong(self, classifier: str, codes: Sequence[Codes]) -> float:
        """Train a classifier on these rows, and return its error rate on the held-out rows."""
        model = _classifier(classifier)(self._schema, self._used)
        rows, wanted = self._asked(codes)
        test_rows, test_wanted = self._asked(self._tested)
        if (wanted == wanted[0]).all():  # only one class to learn, so it is always predicted
            return float((test_wanted != wanted[0]).mean())
        return _wrong(model, rows, wanted, test_rows, test_wanted)

    def wrong_by_majority(self) -> float:
        values, counts = np.unique(self._target.of(self.others), return_counts=True)
        return float((self._target.of(self._tested) != values[np.argmax(counts)]).mean())

    def _asked(self, codes: Sequence[Codes]) -> tuple[Codes, Codes]:
        return np.stack([codes[index] for index in self._used], axis=1), self._target.of(codes)


def misclassification(exam: Exam, target: Target, synthetic: Sequence[Codes]) -> Iterator[Misclassified]:
    """Yield the error rates of classifiers trained on the synthetic rows, and on the real rows not held out."""
    for name in CLASSIFIERS:
        yield Misclassified(
            target=target.name,
            classifier=name,
            synthetic=exam.wrong(name, synthetic),
            real=exam.wrong(name, exam.others),
            majority=exam.wrong_by_majority(),
        )


def _classifier(name: str) -> Any:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        needed = "classifiers need scikit-learn, which is not installed"
        raise OperatorError(f"{needed}: install the extra `experiments` (pip install 'dp-subn[experiments]')") from None
    return _linear_svm if name == "linear SVM" else _gradient_boosting


def _linear_svm(schema: Schema, used: Sequence[int]) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import LinearSVC

    sizes = [schema.sizes[index] for index in used]
    listed = [place for place, size in enumerate(sizes) if size <= _LISTED_EACH]
    numbers = [place for place, size in enumerate(sizes) if size > _LISTED_EACH]
    one_each = OneHotEncoder(categories=[np.arange(sizes[place]) for place in listed])
    columns = ColumnTransformer([("listed", one_each, listed), ("numbers", StandardScaler(), numbers)])
    return make_pipeline(columns, LinearSVC(dual=False))


def _gradient_boosting(schema: Schema, used: Sequence[int]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    attributes = [schema.attributes[index] for index in used]
    unordered = [not one.is_ordered and one.size <= _MOST_UNORDERED for one in attributes]
    return HistGradientBoostingClassifier(categorical_features=unordered, random_state=0)


def _wrong(model: Any, rows: Codes, wanted: Codes, test_rows: Codes, test_wanted: Codes) -> float:
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # One thread: on a busy machine, threads that wait for each other take many times as long.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # a classifier that has not converged is measured as it is
        return float((model.fit(rows, wanted).predict(test_rows) != test_wanted).mean())
