"""Synthetic tables with the types of their schema, as Parquet: dictionaries, whole numbers, decimals, dates, booleans.

It does not know how rows are drawn. A missing value becomes null. Descriptions, units and labels go into the fields'
metadata.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from protocol.tables.attributes import AttributeBase, Boolean, Date, Datetime, Integer, Listed, Moment, Real
from protocol.tables.schema import Schema
from protocol.tables.text_column import TextColumn

_MOST_DIGITS = 38  # of a decimal number in Parquet
_TEXTS = pa.dictionary(pa.int32(), pa.string())
GROUP_ROWS = 1 << 18  # of a row group, which readers take in at once
_BLOCK = 1 << 19  # bytes of CSV that are read at once
pa.set_memory_pool(pa.system_memory_pool())  # gives back what it no longer needs, and shares with Python


def parquet_pieces(schema: Schema, batches: Iterable[Any]) -> Iterator[bytes]:
    """Yield a table as Parquet from batches of columns of text, as dictionaries, in the schema's order."""
    typed, sink = arrow_schema(schema), _Sink()
    listed = [attribute.name for attribute in schema.attributes if isinstance(attribute, Listed)]
    with pyarrow.parquet.ParquetWriter(sink, typed, compression="zstd", use_dictionary=listed) as writer:
        group: list[Any] = []
        for texts in batches:
            columns = [
                _typed(attribute, column.dictionary).take(column.indices)  # each text is read once
                for attribute, column in zip(schema.attributes, texts, strict=True)
            ]
            group.append(pa.record_batch(columns, schema=typed))
            if sum(map(len, group)) >= GROUP_ROWS:
                writer.write_table(pa.Table.from_batches(group))
                group = []
            yield from sink.taken()
        if group:
            writer.write_table(pa.Table.from_batches(group))
    yield from sink.taken()


class _Sink(io.RawIOBase):
    """A file that is only written, from which the bytes are taken as they come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(part)

    def taken(self) -> list[bytes]:
        parts, self._parts = self._parts, []
        return parts


def csv_batches(path: Path, schema: Schema) -> Iterator[Any]:
    """Read a published table, batch by batch, as columns of text for `parquet_pieces`."""
    texts = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(schema.names, _TEXTS), null_values=[], strings_can_be_null=False
    )
    reading = pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK)
    parsing = pyarrow.csv.ParseOptions(ignore_empty_lines=False)
    with pyarrow.csv.open_csv(path, read_options=reading, parse_options=parsing, convert_options=texts) as reader:
        for batch in reader:
            yield batch.columns


def text_batches(batches: Iterator[Sequence[TextColumn]]) -> Iterator[Any]:
    """Turn batches of drawn columns into those of `parquet_pieces`."""
    for columns in batches:
        yield [_dictionary(column) for column in columns]


def _dictionary(column: TextColumn) -> Any:
    return pa.DictionaryArray.from_arrays(column.places.astype(np.int32), pa.array(column.texts, pa.string()))


def arrow_schema(schema: Schema) -> Any:
    fields = [
        pa.field(attribute.name, _type(attribute), bool(attribute.missing), _metadata(attribute))
        for attribute in schema.attributes
    ]
    return pa.schema(fields, {"title": schema.title, "dp-subn-schema": schema.to_json()})


def _type(attribute: AttributeBase) -> Any:
    if isinstance(attribute, Boolean):
        return pa.bool_()
    if isinstance(attribute, Listed):
        return pa.dictionary(pa.int32(), pa.string(), ordered=attribute.is_ordered)
    if isinstance(attribute, Integer):
        return pa.int64()
    if isinstance(attribute, Real):
        return _decimal_type(attribute) or pa.float64()
    return pa.date32() if isinstance(attribute, Date) else pa.timestamp("ms")


def _decimal_type(attribute: Real) -> Any:
    """Return the type of a number that the schema gives so many decimals, if Parquet can hold it exactly."""
    if attribute.decimals is None and attribute.step is None:
        return None
    largest = max(abs(attribute.lowest), abs(attribute.highest))
    digits = len(str(int(largest))) + attribute.places
    return pa.decimal128(digits, attribute.places) if digits <= _MOST_DIGITS else None


def _metadata(attribute: AttributeBase) -> dict[str, str]:
    words = {"description": attribute.description, "unit": getattr(attribute, "unit", "")}
    labels = getattr(attribute, "labels", None)
    if labels:
        words["labels"] = json.dumps(labels, ensure_ascii=False)
    return {name: text for name, text in words.items() if text}


def _typed(attribute: AttributeBase, texts: Any) -> Any:
    if attribute.missing:
        texts = pc.if_else(pc.equal(texts, attribute.missing[0]), pa.scalar(None, pa.string()), texts)
    if isinstance(attribute, Boolean):
        return pc.equal(texts, attribute.true[0])
    if isinstance(attribute, Listed):
        values = pa.array(attribute.written, pa.string())
        codes = pc.index_in(texts, value_set=values)
        return pa.DictionaryArray.from_arrays(codes, values, ordered=attribute.is_ordered)
    if isinstance(attribute, Moment):
        moments = pc.strptime(texts, format=_arrow_format(attribute), unit="s")
        return moments.cast(_type(attribute))
    return texts.cast(_type(attribute))


def _arrow_format(attribute: Moment) -> str:
    """Return the format as Arrow reads it: numbers may always be without a leading zero."""
    assert isinstance(attribute, Date | Datetime)
    return attribute.format.replace("%-", "%")
