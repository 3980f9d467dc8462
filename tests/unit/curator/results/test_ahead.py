"""Working ahead: the order stays, errors arrive, and no more than one item is made before it is wanted."""

from itertools import islice

import pytest

from curator.results.ahead import ahead


@pytest.mark.parametrize("count", [0, 1, 50])
def test_all_items_come_in_their_order(count):
    assert list(ahead(range(count))) == list(range(count))


def test_only_the_next_item_is_made_beforehand():
    made = []
    items = ahead(made.append(number) or number for number in range(100))
    assert list(islice(items, 10)) == list(range(10))
    items.close()  # waits for the item that is being made
    assert len(made) == 11


def test_an_error_arrives_where_its_item_would():
    def broken():
        yield 1
        raise ValueError("the second item is broken")

    items = ahead(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="second item"):
        next(items)
