"""`subn-party ledger acknowledge`: charges answers that the ledger lacks because it was restored from a backup.

It does not know the command line's words or how results are printed.
"""

from party import views
from party.commands.line import Seams, call, curator_of
from party.commands.result import Result, unknown_dataset
from party.errors import SettingsError
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.lock import served_alone
from party.rollback import lost
from protocol.messages.http import SentReceipt


def acknowledge(home: Home, dataset: str | None, seams: Seams) -> Result:
    with served_alone(home.lock), open_home(home) as opened:
        missing = lost(opened, call(curator_of(opened, seams), lambda line: line.receipts()))
        charged = _charged_to(opened, missing, dataset)
        opened.ledger.acknowledge(missing, charged)
        for one in missing:
            request = opened.ledger.request(one.run)
            paid_by = (request.dataset if request is not None else None) or charged
            opened.audit.append(
                "acknowledged",
                run=one.run,
                step=one.step,
                charge=str(one.charge),
                delta=str(one.delta),
                dataset=paid_by,
            )
    data = [one.model_dump(mode="json", exclude={"signature"}) for one in missing]
    lines = [f"charged {views.amount(str(one.charge))} for {one.step} of {one.run}" for one in missing]
    return Result(data, lines or ["the ledger knows all that the curator holds: nothing to acknowledge"])


def _charged_to(opened: OpenHome, missing: list[SentReceipt], dataset: str | None) -> str:
    """The data set that pays for runs unknown to the ledger, since a receipt names no data set."""
    known = list(opened.settings.datasets)
    if dataset is None and len(known) > 1 and any(opened.ledger.request(one.run) is None for one in missing):
        raise SettingsError(f"name the data set of the forgotten runs with --dataset: {', '.join(known)}")
    if dataset is not None and dataset not in known:
        raise unknown_dataset(opened, dataset)
    return dataset or known[0]
