"""What a party keeps is its owner's alone, also after somebody opened it to others."""

from pathlib import Path
from typing import Any

import pytest

from party import service
from party.errors import SettingsError
from party.home.layout import Home
from party.home.modes import close_to_others, open_to_others
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, make_home, write_keys

KEPT = ("party.toml", "party.toml~", "ledger.db", "ledger.db-wal", "audit.jsonl", "local-token", "metrics-token")
OWN = ("patients.csv", "schema.json", "ca.pem")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.path.mkdir(mode=0o700)
    for name in (*KEPT, *OWN, "keys/identity.json", "rows/run-1/rows.npz", "comparisons/run-1.json"):
        (found.path / name).parent.mkdir(parents=True, exist_ok=True)
        (found.path / name).write_text("x")
    for path in found.path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return found


def names(home: Home, paths: list[Path]) -> set[str]:
    return {str(path.relative_to(home.path)) for path in paths}


def test_every_file_that_a_party_keeps_is_looked_at(home: Home) -> None:
    folders = {"keys", "keys/identity.json", "rows", "rows/run-1", "rows/run-1/rows.npz"}
    assert names(home, open_to_others(home)) == {*KEPT, *folders, "comparisons", "comparisons/run-1.json"}


def test_closing_takes_nothing_from_the_owner_and_leaves_his_tables(home: Home) -> None:
    assert close_to_others(home)
    assert open_to_others(home) == []
    assert (home.path / "ledger.db").stat().st_mode & 0o777 == 0o600
    assert home.keys.stat().st_mode & 0o777 == 0o700
    assert {(home.path / name).stat().st_mode & 0o777 for name in OWN} == {0o644}


def test_a_file_that_cannot_be_closed_is_refused_where_others_can_reach_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_path: Path, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", denied)
    close_to_others(home)  # nobody else can enter the home
    monkeypatch.undo()
    home.path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", denied)
    with pytest.raises(SettingsError, match=r"others can read .*party.toml, .* call `chmod go= "):
        close_to_others(home)


def test_a_service_closes_the_files_before_anything_else_and_says_so(tmp_path: Path) -> None:
    fake = FakeCurator()
    home = make_home(tmp_path / "home", 0, fake, accept="ask", more="\n[local]\nport = 0\n")
    write_keys(home, 0)
    Party(home, 0, fake).opened.ledger.close()
    (home.path / "local-token").write_text("no token")  # so that the service ends at once
    for path in (home.settings, home.ledger, home.audit):
        path.touch()
        path.chmod(0o644)
    logged: list[tuple[str, Any]] = []

    def log(event: str, **fields: object) -> None:
        logged.append((event, fields.get("files")))

    with pytest.raises(SettingsError, match="does not hold the token"):
        service.serve(home, log, transport=fake.transport())
    event, files = logged[0]
    assert event == "closed to others"
    assert {"party.toml", "ledger.db", "audit.jsonl", "local-token"} <= set(files)
    assert open_to_others(home) == []
