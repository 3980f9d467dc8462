"""The files of a party's home, by name.

It does not know what the files hold.
"""

from dataclasses import dataclass
from pathlib import Path

SETTINGS_FILE = "party.toml"


@dataclass(frozen=True)
class Home:
    """Paths of everything that a party keeps."""

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
        """The file with the URL of the pages; it exists while the service runs."""
        return self.path / "address"

    @property
    def hindrance(self) -> Path:
        """The reason why the service could not be started, as long as `subn-party start` tries again."""
        return self.path / "not-started"

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
        """Comparisons of published tables with the party's own rows: for the data owner only."""
        return self.path / "comparisons"

    @property
    def draft(self) -> Path:
        """Files of a backup that is being restored; it is gone afterwards."""
        return self.path / ".restore"
