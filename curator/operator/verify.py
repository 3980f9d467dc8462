"""`subn verify`: check off-line that a published result proves what it claims.

It does not know the checks (`protocol.run.manifest`).
"""

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curator.rendering.output import say
from protocol.errors import ManifestError, OperatorError
from protocol.messages.fingerprint_words import fits, is_fingerprint
from protocol.text import printable_lines

if TYPE_CHECKING:
    from protocol.run.manifest import Manifest

VERIFIED, REJECTED = 0, 1
_KEY_BYTES = 32


def add_verify_options(verify: argparse.ArgumentParser) -> None:
    verify.description = (
        "Check that the manifest is signed by its curator, that every party signed the plan and a receipt for "
        "each of its steps, that the spent amounts are those of the plan, and that the files at hand are the published "
        "files. The files at hand are the named table, and files beside the manifest under their published names."
    )
    verify.epilog = "Exit codes: 0 verified, 1 not verified, 2 the command cannot work."
    verify.add_argument("manifest", type=Path, metavar="MANIFEST", help="manifest.json as it was published")
    verify.add_argument(
        "--table", type=Path, metavar="F", help="the synthetic table at hand (.csv or .parquet), under any name"
    )
    verify.add_argument(
        "--curator-key",
        metavar="KEY",
        help="the curator's key or its fingerprint, from an independent source such as a party; without it, only "
        "consistency is checked",
    )
    verify.add_argument("--json", action="store_true", help="print what was checked as JSON")
    verify.set_defaults(run=_verify)


def _verify(chosen: argparse.Namespace) -> int:
    from protocol.run.manifest import verify_manifest  # imports numpy, for which no help should wait

    data = _read(chosen.manifest)
    if chosen.table is not None and not chosen.table.is_file():
        raise OperatorError(f"{chosen.table}: there is no such file; correct --table")
    key = _key(chosen.curator_key)
    try:
        manifest = verify_manifest(data, {}, key)
        if chosen.curator_key is not None and key is None:
            _check_fingerprint(manifest, chosen.curator_key)
        files = _files_at_hand(manifest, chosen.manifest.parent, chosen.table)
        verify_manifest(data, {name: _sha256(path) for name, path in files.items()}, key)
    except ManifestError as error:
        print(f"subn: not verified: {printable_lines(str(error))}", file=sys.stderr)
        return REJECTED
    found = _findings(manifest, sorted(files), chosen.curator_key is not None)
    say(chosen, found, *_in_words(found), indent=1)
    return VERIFIED


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None


def _key(text: str | None) -> bytes | None:
    """Return the key, or None if none or a fingerprint is given."""
    if text is None or is_fingerprint(text):
        return None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise OperatorError(
            f"--curator-key is {text[:80]!r}: expected are the 64 hexadecimal digits of a key, or its fingerprint (32 "
            "digits, or twelve words)"
        )
    return key


def _check_fingerprint(manifest: "Manifest", told: str) -> None:
    from crypto.signing import fingerprint  # a library for which no help should wait

    if not fits(told, fingerprint(manifest.curator_key)):
        raise ManifestError(
            f"the manifest is signed by the curator {fingerprint(manifest.curator_key)}, another one than you named"
        )


def _files_at_hand(manifest: "Manifest", beside: Path, table: Path | None) -> dict[str, Path]:
    found = {name: beside / name for name in manifest.outputs if (beside / name).is_file()}
    if table is not None:
        found["table.parquet" if table.suffix == ".parquet" else "table.csv"] = table
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _findings(manifest: "Manifest", files: list[str], is_known_curator: bool) -> dict[str, Any]:
    plan = manifest.plan
    return {
        "verified": True,
        "run": plan.run,
        "plan_hash": plan.hash(),
        "method": plan.method,
        "privacy": plan.privacy,
        "epsilon": str(plan.epsilon),
        "delta": str(plan.delta),
        "curator_key": manifest.curator_key.hex(),
        "curator_key_was_given": is_known_curator,
        "finished": manifest.finished,
        "spent": {record.name: str(record.spent) for record in manifest.parties},
        "spent_delta": {record.name: str(record.delta) for record in manifest.parties},
        "receipts": sum(len(record.receipts) for record in manifest.parties),
        "files": files,
    }


def _in_words(found: dict[str, Any]) -> list[str]:
    known = "as you gave it" if found["curator_key_was_given"] else "compare it, or give --curator-key"
    files = ", ".join(found["files"]) or "none at hand"
    deltas = {name: f" and a delta of {delta}" for name, delta in found["spent_delta"].items() if delta != "0"}
    amounts = found["spent"].items()
    spent = [f"{name} spent {amount} of {found['epsilon']}{deltas.get(name, '')}" for name, amount in amounts]
    return [
        f"verified: run {found['run']}, {found['method']}, finished {found['finished']}",
        f"plan {found['plan_hash']}, signed by {len(spent)} parties, with {found['receipts']} signed receipts",
        *spent,
        f"files that are the published ones: {files}",
        f"curator's key {found['curator_key']} ({known})",
    ]
