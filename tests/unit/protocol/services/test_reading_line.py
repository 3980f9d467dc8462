import pytest

from protocol.errors import DataError
from protocol.services.reading_line import ReadingLine
from protocol.tables.batches import Batch


def batches(count):
    return [Batch(1_500, {}) for _ in range(count)]


def watched(seconds, count=4, **known):
    """What is written while each batch takes so many seconds."""
    times, written = iter(range(1000)), []
    line = ReadingLine(written.append, lambda: next(times) * seconds)
    assert len([*line.watched("patients\n.csv", batches(count), **known)]) == count
    return written


def test_quick_reading_writes_nothing():
    assert watched(0.01) == []


def test_slow_reading_writes_its_rows_and_its_part_each_second_and_clears_the_line():
    *states, last = watched(0.6, part=lambda: 0.256)
    assert states[0].startswith("\rpatients\\u000a.csv: 3,000 rows read, 26%  ")
    assert all(len(state) == len(states[0]) for state in states)
    assert last == "\r" + " " * (len(states[0]) - 1) + "\r"


def test_a_part_that_nobody_knows_is_left_out():
    assert watched(2.0, 1)[0].rstrip() == "\rpatients\\u000a.csv: 1,500 rows read"


def test_the_line_is_cleared_before_an_error_is_told():
    written = []
    times = iter(range(100))

    def broken():
        yield from batches(1)
        raise DataError("no")

    line = ReadingLine(written.append, lambda: next(times))
    with pytest.raises(DataError):
        list(line.watched("t", broken()))
    assert len(written) == 2
    assert written[-1].strip() == ""
