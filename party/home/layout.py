"""The files of a party's home, by name.

It does not know what they hold.
"""

from dataclasses import dataclass
from pathlib import Path

SETTINGS_FILE = "party.toml"


@dataclass(frozen=True)
class Home:
    """Where a party keeps what."""

    path: Path

    @property
    def settings(self) -> Path:
        return self.path / SETTINGS_FILE

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.db"

    @property
    def audit(self) -> Path:
        return self.path / "audit.jsonl"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def address(self) -> Path:
        """Where the serving process has its pages, while it serves."""
        return self.path / "address"

    @property
    def ca(self) -> Path:
        """The curator's certificate authority, pinned at enrolment."""
        return self.path / "ca.pem"

    @property
    def rows(self) -> Path:
        """Coded rows of active runs."""
        return self.path / "rows"

    @property
    def comparisons(self) -> Path:
        """Published tables beside the own rows: for the data owner's eyes."""
        return self.path / "comparisons"
