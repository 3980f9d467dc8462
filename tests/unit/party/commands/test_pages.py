"""`subn-party page` and `subn-party compare`: the way into the pages, and the comparison without them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from party.commands.main import main
from tests.support.fake_curator import FakeCurator
from tests.support.owner import TOKEN, served, with_history
from tests.support.party import Party, seams_to, write_keys


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def party(tmp_path: Path, fake: FakeCurator) -> Iterator[Party]:
    found = with_history(tmp_path, fake)[0]
    write_keys(found.home, 0)
    yield found
    found.opened.ledger.close()


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], party: Party, fake: FakeCurator) -> Any:
    def tell(*words: str) -> tuple[int, str, str]:
        code = main([words[0], "--home", str(party.home.path), *words[1:]], seams_to(fake))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return tell


def test_the_address_that_is_printed_opens_the_pages_once(party: Party, told: Any) -> None:
    (party.home.path / "local-token").write_text(TOKEN)
    with served(party) as owner:
        party.home.address.write_text(owner.url + "\n")
        code, said, _ = told("page", "--json")
        assert code == 0
        address = json.loads(said)["address"]
        assert address.startswith(f"{owner.url}/sign-in?ticket=")
        with httpx.Client() as browser:
            assert browser.get(address).status_code == 200
            assert "party-1" in browser.get(f"{owner.url}/").text
            assert browser.get(address).status_code == 401
        assert told("page")[1].splitlines()[0] != address


def test_without_a_service_nothing_is_opened(party: Party, told: Any) -> None:
    code, _, complaint = told("page")
    assert code == 1
    assert "is not running: start it with `subn-party serve`" in complaint
    party.home.address.write_text("http://127.0.0.1:9\n")  # left by a service that was killed
    code, _, complaint = told("page")
    assert code == 1
    assert "does not answer" in complaint


def test_another_homes_token_opens_nothing(party: Party, told: Any) -> None:
    (party.home.path / "local-token").write_text("cd" * 32)
    with served(party) as owner:
        party.home.address.write_text(owner.url + "\n")
        code, said, complaint = told("page")
    assert (code, said) == (1, "")
    assert "does not accept this home's local-token" in complaint


@pytest.mark.parametrize("content", [b"", "ä".encode() * 32, b"\xff" * 64])
def test_a_token_that_is_not_as_written_is_named(party: Party, told: Any, content: bytes) -> None:
    (party.home.path / "local-token").write_bytes(content)
    party.home.address.write_text("http://127.0.0.1:9\n")
    code, said, complaint = told("page")
    assert (code, said) == (2, "")
    assert "local-token does not hold the token that this program wrote: remove the file" in complaint


def test_the_comparison_on_the_command_line_is_the_pages(party: Party, told: Any, fake: FakeCurator) -> None:
    code, said, _ = told("compare", "run-1", "--json", "--guess", "b")
    assert code == 0
    found = json.loads(said)
    assert found["classifier"]["column"] == "b"
    assert found == json.loads((party.home.comparisons / f"{found['plan']}.json").read_text())
    code, said, _ = told("compare", "run-1", "--guess", "b")
    assert f"pairs:          {100 * found['two_way']:.1f} % apart on average" in said
    assert "b is predicted correctly in" in said
    assert fake.requests.count("GET /v1/runs/run-1/table.csv") == 1


def test_what_cannot_be_compared_is_said(told: Any, fake: FakeCurator) -> None:
    code, _, complaint = told("compare", "run-9")
    assert code == 2
    assert "there is no run 'run-9' here" in complaint
    code, _, complaint = told("compare", "run-1", "--guess", "nothing")
    assert code == 3
    assert "there is no column 'nothing'" in complaint
