"""CSV as it is written: the bytes that Python's `csv` writes, however texts recur, are quoted or cut into pieces."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from curator.results import csv_files
from curator.results.csv_files import csv_pieces
from protocol.tables.kinds import ranged
from protocol.tables.kinds.numbers import Integer, Real
from protocol.tables.text_column import TextColumn

TEXTS = st.lists(st.text(st.sampled_from('ab ,"\n\r;é'), max_size=3), min_size=1, max_size=5)


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 9))
    found = []
    for texts in draw(st.lists(TEXTS, min_size=1, max_size=5)):
        places = draw(st.lists(st.integers(0, len(texts) - 1), min_size=rows, max_size=rows))
        found.append(TextColumn(texts, np.array(places, np.uint8)))
    return found


@pytest.mark.parametrize(("piece", "combined"), [(1, 1), (9, 6), (1 << 23, 1 << 12)])
@given(st.data())
@settings(deadline=None, max_examples=60)
def test_rows_are_written_as_by_csv(piece, combined, data):
    columns = data.draw(tables())
    others = [TextColumn(data.draw(st.sampled_from([own.texts, own.texts[:1]])), own.places * 0) for own in columns]
    batches, expected = [columns, columns, others, columns], io.StringIO(newline="")
    for batch in batches:
        csv.writer(expected, lineterminator="\n").writerows(zip(*batch, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "PIECE", piece)
        patch.setattr(csv_files, "MOST_COMBINED", combined)
        assert b"".join(csv_pieces(batches)) == expected.getvalue().encode()


def test_no_rows_are_no_text():
    assert [*csv_pieces([[TextColumn.of_rows([]), TextColumn(["x"], np.zeros(0, np.uint8))]])] == []


def test_a_piece_of_rows_is_bounded_however_many_columns_there_are(monkeypatch):
    monkeypatch.setattr(csv_files, "PIECE", 1000)
    columns = [TextColumn(["x" * 9, "y"], np.arange(500) % 2)] * 30
    assert max(map(len, csv_pieces([columns]))) <= 1000


@pytest.mark.parametrize("kind", [Integer, Real])
def test_numbers_are_written_the_same_whether_their_texts_are_kept_or_not(monkeypatch, kind):
    fields = {"decimals": 1} if kind is Real else {"step": 3}
    column = kind(kind=kind.__name__.lower(), name="x", min=-30, max=60, bins=5, missing=("NA",), **fields)
    codes = np.arange(300) % 6
    kept = [*column.texts(codes, Stream.keyed(b"x"))]
    monkeypatch.setattr(ranged, "MOST_KEPT", 0)
    assert [*column.texts(codes, Stream.keyed(b"x"))] == kept
    assert [code for code, text in zip(codes, kept, strict=True) if text == "NA"] == [5] * 50
