"""Encodings: how attributes become variables, and back.

It does not know labels, bins or missing tokens (`protocol.tables.attributes`, `protocol.tables.coding`).

`native`        a variable for each attribute
`binary`        ceil(log2 size) bits per attribute, the most significant first
`gray`          the bits of the Gray code, so that neighbouring codes differ in one bit
`hierarchical`  native, with generalised variants of each variable that may serve as parents (PrivBayes, section 5)

An attribute with a single category still gets one bit, whose code 1 decodes to no value. Every attribute therefore has
a variable, and all variables of `binary` and `gray` are binary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from protocol.errors import SchemaError
from protocol.options import EncodingName
from protocol.tables.attributes import Attribute, Categorical, first_duplicate, quoted
from protocol.tables.domain import Codes, Domain, Variable, Variables
from protocol.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class Block:
    """The base variables of one attribute, and the combinations of their codes that decode to a value."""

    variables: Variables
    valid: NDArray[np.bool_]  # one axis per variable


@dataclass(frozen=True, eq=False)
class Encoding:
    name: EncodingName
    domain: Domain
    blocks: tuple[Block, ...]  # one per attribute
    sizes: tuple[int, ...]  # categories of each attribute

    @classmethod
    def of(cls, schema: Schema, name: EncodingName) -> "Encoding":
        in_bits = name in ("binary", "gray")
        variables: list[Variable] = []
        blocks: list[Block] = []
        for attribute in schema.attributes:
            start = len(variables)
            named = _bits(attribute) if in_bits else [(attribute.name, attribute.size)]
            ordered = attribute.categories if attribute.is_ordered and not in_bits else 0
            variables += (
                Variable(label, size, start + offset, ordered=ordered) for offset, (label, size) in enumerate(named)
            )
            shape = tuple(size for _, size in named)
            blocks.append(Block(tuple(range(start, len(variables))), _valid(shape, attribute.size, name)))
        if name == "hierarchical":
            for base, attribute in enumerate(schema.attributes):
                variables += _variants(attribute, base)
        _refuse_equal_names(variables)
        return cls(name, Domain(tuple(variables)), tuple(blocks), schema.sizes)

    def encode(self, codes: Sequence[Codes]) -> list[Codes]:
        """Encode the columns of the attributes as columns of the base variables."""
        columns: list[Codes] = []
        for block, size, column in zip(self.blocks, self.sizes, codes, strict=True):
            if column.size and int(column.max()) >= size:
                raise ValueError(f"a code is outside the {size} categories of its attribute")
            columns += _to_bits(column, block.valid.ndim, self.name) if self._in_bits else [column]
        return columns

    def decode(self, columns: Sequence[Codes]) -> list[Codes]:
        """Invert `encode`. Sampling never produces codes that decode to no value."""
        if len(columns) != self.domain.count:
            raise ValueError(f"{len(columns)} columns were given for {self.domain.count} base variables")
        codes: list[Codes] = []
        for block, size in zip(self.blocks, self.sizes, strict=True):
            own = [columns[variable] for variable in block.variables]
            codes.append(_from_bits(own, size, self.name) if self._in_bits else own[0])
            if codes[-1].size and int(codes[-1].max()) >= size:
                raise ValueError(f"the codes of variables {block.variables} decode to no value")
        return codes

    @property
    def _in_bits(self) -> bool:
        return self.name in ("binary", "gray")


def _refuse_equal_names(variables: Sequence[Variable]) -> None:
    # The network is published by these names.
    if (name := first_duplicate([variable.name for variable in variables])) is not None:
        raise SchemaError(f"Two variables of this encoding would both be called {quoted(name)}; rename an attribute.")


# Bits


def _bits(attribute: Attribute) -> list[tuple[str, int]]:
    """Name and size of every bit; "age:3" stands for 2^3."""
    count = max(1, (attribute.size - 1).bit_length())
    return [(f"{attribute.name}:{bit}", 2) for bit in reversed(range(count))]


def _valid(shape: tuple[int, ...], size: int, name: EncodingName) -> NDArray[np.bool_]:
    codes = np.arange(size)
    valid = np.zeros(shape, dtype=np.bool_)
    valid.reshape(-1)[codes ^ (codes >> 1) if name == "gray" else codes] = True
    return valid


def _to_bits(codes: Codes, count: int, name: EncodingName) -> list[Codes]:
    word = codes ^ (codes >> 1) if name == "gray" else codes
    return [((word >> bit) & 1).astype(np.uint8) for bit in reversed(range(count))]


def _from_bits(bits: Sequence[Codes], size: int, name: EncodingName) -> Codes:
    if name == "gray":  # a bit of the code is the sum, modulo 2, of its Gray bit and all higher Gray bits
        bits = list(np.bitwise_xor.accumulate(np.stack(bits), axis=0))
    code_type = np.uint8 if size <= 256 else np.uint16
    return reduce(lambda high, bit: (high << 1) | bit, [bit.astype(code_type) for bit in bits])


# Generalised variants


def _variants(attribute: Attribute, base: int) -> Iterator[Variable]:
    """Generalised variants from fine to coarse, each smaller than the previous; at least two categories remain."""
    groupings = _taxonomy_levels(attribute) if isinstance(attribute, Categorical) else _neighbours(attribute)
    previous, level = attribute.size, 0
    for groups in groupings:
        size = max(groups) + 1
        if 1 < size < previous:
            previous, level = size, level + 1
            yield Variable(f"{attribute.name}@{level}", size, base, groups)


def _taxonomy_levels(attribute: Categorical) -> Iterator[tuple[int, ...]]:
    """Cut the taxonomy at every depth, the deepest first. A value that no group names stays by itself."""
    paths = [(*attribute.paths.get(value, ()), value) for value in attribute.written]
    for depth in range(max(map(len, paths)) - 1, 0, -1):
        # A cut above a value gives its group. The length distinguishes a value from a group of the same name.
        cut = [(path[:depth], len(path) > depth) for path in paths] + [((), False)] * bool(attribute.missing)
        numbers: dict[object, int] = {}
        yield tuple(numbers.setdefault(group, len(numbers)) for group in cut)


def _neighbours(attribute: Attribute) -> Iterator[tuple[int, ...]]:
    """Merge pairs of neighbours, level by level. The missing category stays by itself."""
    count = attribute.categories
    for level in range(1, count.bit_length() + 1):
        last = (count - 1) >> level
        yield tuple(code >> level for code in range(count)) + (last + 1,) * bool(attribute.missing)
