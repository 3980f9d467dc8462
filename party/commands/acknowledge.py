"""`subn-party ledger acknowledge`: the data owner's word after books were set back, or a copy of the home has answered.

It does not know the command line's words or how results are printed.

It charges every answer that the ledger lacks: those that the party's own audit log tells of, and those for which the
curator holds receipts. It goes on with a log whose end was lost, and lets the party serve again.
"""

from collections.abc import Iterable

from party import views
from party.books import audit
from party.books.reconciliation import Forgotten
from party.commands.line import Seams, call, curator_of
from party.commands.result import Result, unknown_dataset
from party.errors import SettingsError, Unreadable
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.lock import served_alone
from party.rollback import lost, lost_by_log


def acknowledge(home: Home, dataset: str | None, seams: Seams) -> Result:
    with served_alone(home.lock), open_home(home) as opened:
        _refuse_a_broken_log(opened)
        charged = _charge(opened, lost_by_log(opened), dataset)  # also if the curator cannot be asked
        opened.audit.go_on()
        receipts = lost(opened, call(curator_of(opened, seams), lambda line: line.receipts()))
        charged += _charge(opened, [Forgotten(receipt, "") for receipt in receipts], dataset)
        was_stopped = opened.ledger.stopped()
        opened.ledger.resume()
    lines = [f"charged {views.amount(one['charge'])} for {one['step']} of {one['run']}" for one in charged]
    lines += [f"the service may start again; it was stopped because {was_stopped}"] if was_stopped else []
    return Result(charged, lines or ["the ledger knows all that log and curator hold: nothing to acknowledge"])


def _charge(opened: OpenHome, missing: Iterable[Forgotten], dataset: str | None) -> list[dict[str, str]]:
    found = list(missing)
    otherwise = _charged_to(opened, found, dataset)
    for one in found:
        payer = one.dataset or otherwise
        opened.ledger.acknowledge([one.receipt], payer, **opened.paying(payer))
        request = opened.ledger.request_of_plan(one.receipt.plan)
        paid_by = (request.dataset if request is not None else None) or payer
        amounts = {"charge": str(one.receipt.charge), "delta": str(one.receipt.delta)}
        opened.audit.append("acknowledged", run=one.receipt.run, step=one.receipt.step, dataset=paid_by, **amounts)
    return [one.receipt.model_dump(mode="json", exclude={"signature"}) for one in found]


def _charged_to(opened: OpenHome, missing: list[Forgotten], dataset: str | None) -> str:
    """The data set that pays for runs of which neither the log nor the ledger says it."""
    known = list(opened.settings.datasets)
    is_unclear = any(not one.dataset and opened.ledger.request_of_plan(one.receipt.plan) is None for one in missing)
    if dataset is None and len(known) > 1 and is_unclear:
        raise SettingsError(f"name the data set of the forgotten runs with --dataset: {', '.join(known)}")
    if dataset is not None and dataset not in known:
        raise unknown_dataset(opened, dataset)
    return dataset or known[0]


def _refuse_a_broken_log(opened: OpenHome) -> None:
    broken = audit.tampering(opened.home.audit, None) if opened.home.audit.exists() else []
    if broken:
        raise Unreadable(
            f"{broken[0]}; keep the log as it is under another name, find out who changed it, and run this again"
        )
