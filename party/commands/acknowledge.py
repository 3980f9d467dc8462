"""`subn-party ledger acknowledge`: charges what a ledger that was restored from a backup has forgotten.

It does not know the command line's words or how results are printed.
"""

from party import views as showing
from party.commands.line import call, curator_of
from party.commands.result import Said, unknown_dataset
from party.errors import SettingsError
from party.home.home import House, opened
from party.home.lock import served_alone
from party.home.settings import Home
from party.rollback import lost
from protocol.messages.http import Receipt


def acknowledge(home: Home, dataset: str | None) -> Said:
    with served_alone(home.lock), opened(home) as house:
        missing = lost(house, call(curator_of(house), lambda line: line.receipts()))
        charged = _charged_to(house, missing, dataset)
        house.ledger.acknowledge(missing, charged)
        for one in missing:
            request = house.ledger.request(one.run)
            paid_by = (request.dataset if request is not None else None) or charged
            house.audit.append(
                "acknowledged",
                run=one.run,
                step=one.step,
                charge=str(one.charge),
                delta=str(one.delta),
                dataset=paid_by,
            )
    data = [one.model_dump(mode="json", exclude={"signature"}) for one in missing]
    lines = [f"charged {showing.amount(str(one.charge))} for {one.step} of {one.run}" for one in missing]
    return Said(data, lines or ["the ledger knows all that the curator holds: nothing to acknowledge"])


def _charged_to(house: House, missing: list[Receipt], dataset: str | None) -> str:
    """Which data set pays for runs that the ledger has forgotten altogether: a receipt does not say."""
    known = list(house.settings.datasets)
    if dataset is None and len(known) > 1 and any(house.ledger.request(one.run) is None for one in missing):
        raise SettingsError(f"say with --dataset which data set the forgotten runs were about: {', '.join(known)}")
    if dataset is not None and dataset not in known:
        raise unknown_dataset(house, dataset)
    return dataset or known[0]
