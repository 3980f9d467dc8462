"""The commands of daily work: decisions, the account, the audit log.

It does not know the command line's words or how results are printed.
"""

import json
from contextlib import closing
from typing import Any

from party import views
from party.books import audit as audit_log
from party.books.ledger import Ledger
from party.books.reconciliation import forgotten
from party.commands.result import Result, unknown_dataset
from party.errors import LedgerError
from party.files import write_file
from party.home import backup as backups
from party.home.home import open_home
from party.home.keys import own_fingerprint
from party.home.layout import Home


def requests(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        if chosen.request is not None:
            facts = [views.described(opened, opened.known(chosen.request))]
        else:
            found = [one for one in opened.ledger.requests() if chosen.all or one.state != "ended"]
            facts = [views.listed(opened, request) for request in found]
    lines = [line for one in facts for line in (*views.in_words(one), "")]
    return Result(facts, lines or ["no open requests"])


def accept(home: Home, chosen: Any) -> Result:
    return _decide(home, chosen.request, True, "")


def refuse(home: Home, chosen: Any) -> Result:
    return _decide(home, chosen.request, False, chosen.reason)


def ledger(home: Home, chosen: Any) -> Result:
    if chosen.action == "acknowledge":
        from party.commands.acknowledge import acknowledge  # imports HTTP, which no other command here needs

        return acknowledge(home, chosen.dataset, chosen.seams)
    with open_home(home) as opened:
        accounts, claims = views.accounts(opened), None
        if chosen.dataset is not None:
            found = opened.account_of(chosen.dataset)
            if found.name not in accounts:
                raise unknown_dataset(opened, chosen.dataset)
            accounts, claims = {found.name: accounts[found.name]}, found.claims
        entries = [views.line_of(entry) for entry in opened.ledger.entries(claims)]
        folded = opened.ledger.folded()
    data = {"accounts": accounts, "entries": entries, "folded": folded}
    return Result(data, [*_account_lines(accounts), *_entry_lines(entries), *_folded_lines(folded)])


def audit(home: Home, chosen: Any) -> Result:
    problems = _problems_of_log(home)
    if chosen.action == "verify":
        count = sum(1 for _ in audit_log.entries(home.audit)) if not problems else 0
        lines = problems or [f"{home.audit}: {count} entries, the chain is unbroken, and the ledger agrees"]
        return Result({"problems": problems, "entries": count}, lines, 1 if problems else 0)
    found = [entry for entry in audit_log.readable(home.audit) if audit_log.holds(entry, chosen.search)]
    last = found[-chosen.last :] if chosen.last > 0 else []
    lines = [json.dumps(entry, ensure_ascii=False) for entry in last]
    return Result({"entries": last, "problems": problems}, [*lines, *(f"BROKEN: {problem}" for problem in problems)])


def export(home: Home, chosen: Any) -> Result:
    with open_home(home) as opened:
        data = {
            "version": 1,
            "party": opened.settings.curator.name if opened.settings.curator else None,
            "fingerprint": own_fingerprint(opened.keys),
            "accounts": views.accounts(opened),
            "requests": [views.listed(opened, request) for request in opened.ledger.requests()],
            "entries": [views.line_of(entry) for entry in opened.ledger.entries()],
            "audit": list(audit_log.readable(home.audit)),
            "audit_problems": opened.audit_problems(),
        }
        opened.audit.append("exported", what=str(chosen.out or "standard output"))
    text = json.dumps(data, ensure_ascii=False, indent=2)
    if chosen.out is None:
        return Result(data, text.splitlines())
    write_file(chosen.out, text + "\n")
    return Result({"written": str(chosen.out)}, [f"written to {chosen.out}"])


def backup(home: Home, chosen: Any) -> Result:
    made = backups.make(home, chosen.file)
    lines = [
        f"written to {chosen.file}: {len(made['files'])} files, and no row of any table",
        "the file holds your secret keys: keep it where nobody else can read it",
    ]
    return Result({"written": str(chosen.file), **made}, lines)


def restore(home: Home, chosen: Any) -> Result:
    found = backups.restore(home, chosen.file)
    lines = [
        f"{home.path} is as it was at {found['made']}",
        "if your service has answered anything since, `subn-party serve` stops until those answers are charged: "
        "`subn-party ledger acknowledge`",
    ]
    return Result({"restored": str(home.path), **found}, lines)


def _decide(home: Home, run: str, is_accepted: bool, reason: str) -> Result:
    with open_home(home) as opened:
        request = opened.decide(run, is_accepted, reason, "command line")
    lines = [f"{run} is {request.state}; the service tells the curator within seconds, or when it is started"]
    return Result({"run": run, "state": request.state}, lines)


def _problems_of_log(home: Home) -> list[str]:
    """Verify the log, also against the ledger; a ledger that cannot be read is one more problem."""
    try:
        with closing(Ledger.open(home.ledger)) as ledger:
            problems, entries = audit_log.verify(home.audit, ledger.log_head()), ledger.entries()
    except LedgerError as error:
        return [*audit_log.verify(home.audit), str(error)]
    lost = [] if problems else forgotten(home.audit, entries)
    told = f"{home.audit}: tells of {len(lost)} answers that {home.ledger} lacks: the ledger was set back"
    return [*problems, told] if lost else problems


def _account_lines(accounts: dict[str, dict[str, Any]]) -> list[str]:
    return [
        line
        for name, one in accounts.items()
        for line in (*_amount_lines(name, one), *(f"  {also}" for also in views.notes(one)))
    ]


def _amount_lines(name: str, one: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {what} {views.amount(one[f'{kind}total'])} for all runs, {views.amount(one[f'{kind}spent'])} spent, "
        f"{views.amount(one[f'{kind}reserved'])} set aside, {views.amount(one[f'{kind}left'])} left"
        for kind, what in (("", "epsilon"), ("delta_", "delta"))
        if not kind or one["delta_total"] != "0" or one["delta_spent"] != "0"
    ]


def _folded_lines(folded: int) -> list[str]:
    return [f"{folded:,} older requests that were refused or withdrawn are not listed any more"] if folded else []


def _entry_lines(entries: list[dict[str, Any]]) -> list[str]:
    return [
        f"{one['at']}  {one['run']}  {one['step']:16} {views.amount(one['charge']):>10}  {one['mechanism']}"
        for one in entries
    ]
