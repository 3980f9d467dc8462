"""Changes that a data owner makes to party.toml or to the table while runs go on.

It does not know when (`tests.simulation.schedules`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.simulation.homes import BAD, PER_RUN, TOTAL, VALUES


def _settings(old: str, new: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        file = home / "party.toml"
        file.write_text(file.read_text().replace(old, new))

    return change


def _without_peers(home: Path) -> None:
    file = home / "party.toml"
    file.write_text(file.read_text().partition("[peers.")[0])


def _table(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def changed(home: Path) -> None:
        file = home / "patients.csv"
        header, *lines = file.read_text().splitlines()
        file.write_text("\n".join([header, *change(lines)]) + "\n")

    return changed


def _swapped(line: str) -> str:
    first, rest = line.split(",", 1)
    return f"{VALUES[1 - VALUES.index(first)] if first in VALUES else first},{rest}"


RULES: Mapping[str, Callable[[Path], None]] = {
    "ask": _settings('accept = "auto"', 'accept = "ask"'),
    "per run": _settings(f'epsilon_per_run = "{PER_RUN}"', 'epsilon_per_run = "1"'),
    "total": _settings(f'epsilon_total = "{TOTAL}"', 'epsilon_total = "1"'),
    "noise": _settings("updates = [", 'methods = ["dp-ccbn"]\nnoise = ["local"]\nupdates = ['),
    "renamed": _settings("[datasets.patients]", "[datasets.others]"),
    "stranger": _without_peers,
    "rows": _table(lambda lines: lines[:-1]),
    "bad row": _table(lambda lines: [BAD + lines[0][5:], *lines[1:]]),
    "values": _table(lambda lines: [_swapped(line) for line in lines]),
}
