"""A party's home, opened: settings, keys, ledger and audit log, as every command and the service need them together.

It does not know the curator's interface or runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from operator import or_

from party.books import audit
from party.books.audit import Audit
from party.books.budget import Account, Amounts, Budget, Claims, added
from party.books.ledger import Ledger, Request
from party.errors import SettingsError
from party.home import accounts, keys, settings
from party.home.keys import OwnKeys
from party.home.layout import Home
from party.home.settings import CuratorSettings, Peer, Settings
from party.home.sources import Source
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

    @property
    def peers(self) -> dict[str, Peer]:
        """The fingerprints as they are noted now, since `subn-party trust` notes them while this home is served.

        While party.toml cannot be read nobody counts as noted, so that the data owner is asked about every party.
        """
        try:
            found = self.home.settings.stat()
            return _peers(self.home, (found.st_ino, found.st_size, found.st_mtime_ns))
        except (SettingsError, OSError):
            return {}

    @property
    def sources(self) -> dict[str, Source]:
        return accounts.sources_in(self.home, self.settings)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The accounts of the data sets in party.toml. Links are followed anew: a file may be another one by now."""
        return accounts.accounts_of(self.settings.datasets, self.sources)

    def accounts_ever(self) -> list[Account]:
        """The accounts, and one for each data set of the past that none of them claims, which may spend nothing."""
        return [*self.accounts, *(_former(name) for name in sorted(self._unclaimed()))]

    def account_of(self, dataset: str, source: str = "", budget: str = "") -> Account:
        """The account that pays for a data set of party.toml, or that claims the charges of one of the past."""
        present = (one for one in self.accounts if dataset in one.datasets)
        former = (one for one in self.accounts if one.claims.has(dataset, source, budget))
        return next(present, next(former, _former(dataset)))

    def budget(self, account: Account) -> Budget:
        spent, delta_spent = added(account.before, self.ledger.spent_amounts(account.claims))
        reserved, delta_reserved = self.ledger.reserved_amounts(account.claims)
        return Budget(account.limit[0], spent, reserved, account.limit[1], delta_spent, delta_reserved)

    def paying(self, dataset: str | None) -> dict[str, str]:
        """Return the source and the budget of a data set, by which its charges are found again after it was renamed."""
        section = self.settings.datasets.get(dataset or "")
        if dataset is None or section is None:
            return {"source": "", "budget": ""}
        return {"source": self.sources[dataset].digest, "budget": section.budget or ""}

    def unclear_accounts(self) -> list[str]:
        """Reasons why it is not clear who pays for what; a party with any of them must not serve."""
        found = accounts.contradictions(self.settings.datasets, self.sources, self.accounts)
        retired = self.settings.policy.retired
        unclaimed = {name: spent for name, spent in self._unclaimed().items() if name not in retired}
        return [*found, *(accounts.unclaimed_words(name, spent) for name, spent in unclaimed.items())]

    def audit_problems(self) -> list[str]:
        return audit.verify(self.home.audit, self.ledger.log_head())

    def _unclaimed(self) -> dict[str, Amounts]:
        claims = (one.claims for one in self.accounts)
        return self.ledger.unclaimed(reduce(or_, claims))

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
        yield OpenHome(home, found, own, ledger, Audit(home.audit, now, ledger))
    finally:
        ledger.close()


@lru_cache(maxsize=8)
def _peers(home: Home, _stamp: tuple[int, int, int]) -> dict[str, Peer]:
    """Read anew when the file is another one: lists of requests ask for every line."""
    return settings.load(home).peers


def _former(dataset: str) -> Account:
    return Account(dataset, Claims(frozenset({dataset})))
