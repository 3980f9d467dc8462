"""A curator with three parties and one small key for all runs."""

import pytest

from tests.support.curator import Desk, OneKey


@pytest.fixture
def desk(tmp_path, small_secret):
    opened = Desk(tmp_path, crypto=OneKey(small_secret))
    yield opened
    opened.store.close()
