"""A party's home, opened: settings, keys, ledger and audit log, as every command and the service need them together.

It does not know the curator's interface or runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from party.books.audit import Audit
from party.books.budget import Budget
from party.books.ledger import Ledger, Request
from party.errors import SettingsError
from party.home import keys, settings
from party.home.keys import OwnKeys
from party.home.layout import Home
from party.home.settings import CuratorSettings, Settings
from party.logs import utc_now
from protocol.errors import OperatorError


class UnknownRun(OperatorError):
    pass


@dataclass(frozen=True)
class OpenHome:
    home: Home
    settings: Settings
    keys: OwnKeys = field(repr=False)
    ledger: Ledger = field(repr=False)
    audit: Audit = field(repr=False)

    @property
    def curator(self) -> CuratorSettings:
        if self.settings.curator is None:
            raise SettingsError(f"{self.home.settings}: this party is not enrolled; enrol it with `subn-party enrol`")
        return self.settings.curator

    def budget(self, dataset: str) -> Budget:
        """The budget of a data set; a data set that the settings no longer name may spend nothing."""
        known = self.settings.datasets.get(dataset)
        total, delta_total = (known.epsilon_total, known.delta_total) if known is not None else (Fraction(0),) * 2
        spent, delta_spent = self.ledger.spent_amounts(dataset)
        reserved, delta_reserved = self.ledger.reserved_amounts(dataset)
        return Budget(total, spent, reserved, delta_total, delta_spent, delta_reserved)

    def datasets_ever(self) -> list[str]:
        """Names of all data sets in the settings, and of those on which anything was ever spent."""
        spent_on = {entry.dataset for entry in self.ledger.entries() if entry.dataset}
        return sorted({*self.settings.datasets, *spent_on})

    def known(self, run: str) -> Request:
        request = self.ledger.request(run)
        if request is None:
            raise UnknownRun(f"there is no run {run!r} here: `subn-party requests --all` lists them")
        return request

    def decide(self, run: str, accept: bool, reason: str, by: str) -> Request:
        """Note the data owner's decision; a serving process picks it up from the ledger."""
        self.known(run)
        request = self.ledger.decide(run, accept, reason)
        self.audit.append("decided", run=run, decision="accept" if accept else "refuse", reason=reason, by=by)
        return request


@contextmanager
def open_home(home: Home, now: Callable[[], str] = utc_now) -> Iterator[OpenHome]:
    found, own = settings.load(home), keys.load(home.keys)
    ledger = Ledger.open(home.ledger, now)
    try:
        yield OpenHome(home, found, own, ledger, Audit(home.audit, now))
    finally:
        ledger.close()
