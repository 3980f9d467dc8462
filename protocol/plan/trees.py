"""Trees of a schema's attributes for wavelet noise, and whether the recommended plan takes them.

It does not know what the noise costs (`protocol.privacy.wavelets`), or how counts are estimated.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from statistics import fmean

from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.privacy.wavelets import MANY, WORTH, Wavelet, ordered_wavelet, taxonomy_wavelet
from protocol.tables.attributes import Attribute, Categorical
from protocol.tables.haar import Groups
from protocol.tables.schema import Schema

Path = tuple[str, ...]


def wavelets_of(schema: Schema) -> Mapping[int, Wavelet]:
    """The trees of all attributes with many values that have an order or a taxonomy, by place."""
    found = ((place, _wavelet(attribute)) for place, attribute in enumerate(schema.attributes))
    return {place: wavelet for place, wavelet in found if wavelet is not None}


def wavelets_help(schema: Schema, definition: PrivacyDefinition) -> bool:
    """Whether ranges and groups are predicted to be that much more precise, as a mean over the attributes."""
    gains = [wavelet.gain(definition) for wavelet in wavelets_of(schema).values()]
    return bool(gains) and fmean(gains) <= WORTH


def _wavelet(attribute: Attribute) -> Wavelet | None:
    if attribute.categories < MANY:
        return None
    if attribute.is_ordered:
        return ordered_wavelet(attribute.categories, attribute.size)
    if isinstance(attribute, Categorical) and attribute.paths:
        return taxonomy_wavelet(_groups(attribute))
    return None


def _groups(attribute: Categorical) -> Groups:
    """The attribute's categories in the groups of its taxonomy; those that it does not name come last."""
    paths = [(attribute.paths.get(value, ()), code) for code, value in enumerate(attribute.written)]
    return [*_nested(sorted(paths), 0), *range(attribute.categories, attribute.size)]


def _nested(paths: list[tuple[Path, int]], depth: int) -> Iterator["int | Groups"]:
    deeper = [one for one in paths if len(one[0]) > depth]
    for _, group in groupby(deeper, key=lambda one: one[0][depth]):
        yield [*_nested([*group], depth + 1)]
    yield from (code for path, code in paths if len(path) == depth)
