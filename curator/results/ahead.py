"""Work on the next item of an iterator in a second thread, while the caller still uses the last one.

It does not know the items. Drawing and writing leave Python's lock for most of their time, so two cores are used.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items in their order. The next one is made meanwhile; no more than two exist at once."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1, "ahead") as worker:
        coming = worker.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = worker.submit(next, source, end)
            yield item  # type: ignore[misc]  # `end` is no item, and is never yielded
