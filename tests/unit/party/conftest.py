"""The fake curator and the parties that most tests of a party need."""

import pytest

from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, parties_of


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def parties(tmp_path, fake) -> list[Party]:
    return parties_of(tmp_path, fake)
