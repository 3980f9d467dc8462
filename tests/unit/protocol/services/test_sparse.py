"""The first hundred events are told, and later ones whenever their number has doubled."""

from protocol.services.sparse import is_told


def test_how_often_is_told() -> None:
    assert [count for count in range(1, 2000) if is_told(count)] == [*range(1, 101), 200, 400, 800, 1600]
