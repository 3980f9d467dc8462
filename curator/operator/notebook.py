"""A curator from a notebook: typed, a few lines from a schema to a verified table.

    curator = Curator()                                # SUBN_URL, SUBN_KEY_FILE, SUBN_CA_FILE, or given here
    plan = curator.plan("schema.json", epsilon="0.8")  # costs nothing; plan.price, plan.steps
    run = curator.run("schema.json", epsilon="0.8")
    run.wait()
    table = run.frame()                                # a pandas.DataFrame with the schema's types

It does not know HTTP (`curator.operator.client`), and it does not need the server's framework or database.
"""

import csv
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from types import TracebackType
from typing import Any, TypeVar, cast

from crypto.randomness import Stream
from curator import interface
from curator.errors import CuratorUnreachable
from curator.operator.client import CuratorClient
from curator.operator.line import DEFAULT_URL, ca_in, key_in
from curator.operator.plan_options import as_json
from curator.operator.progress import Screen, describe_plan, describe_run
from curator.operator.schema_files import schema_text
from protocol.errors import OperatorError, SubnError
from protocol.messages.run_states import ENDS
from protocol.options import PLAN_OPTIONS, Kind, PlanOption
from protocol.outside_json import LARGEST_FILE, read_json
from protocol.run.manifest import Manifest, verify_manifest
from protocol.text import printable

ExactNumber = str | int | Fraction  # not float: 0.1 as a float is not exactly 1/10

Asking = TypeVar("Asking", bound=Callable[..., Any])

_POLL_SECONDS = 0.5
_PATIENCE = 60.0  # seconds for which a curator may be away, as in a restart


def with_plan_options(method: Asking) -> Asking:
    """Add every option of a plan to the signature and the help of a method.

    Completion and help in a notebook use both.
    """
    found = signature(method)
    own = [one for one in found.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    taken = {one.name for one in own}
    asked = [option for name, option in PLAN_OPTIONS.items() if name not in taken]
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=None, annotation=_type(option)) for option in asked
    ]
    parties = Parameter("parties", Parameter.KEYWORD_ONLY, default=None, annotation=list[str] | None)
    cast(Any, method).__signature__ = found.replace(parameters=[*own, parties, *options])
    lines = [f"    {option.name}: {option.sentence}" for option in asked]
    method.__doc__ = "\n".join([method.__doc__ or "", "", "    parties: names (all that offer rows)", *lines])
    return method


def _type(option: PlanOption) -> Any:
    types: Mapping[Kind, Any] = {"exact": ExactNumber, "exacts": list[ExactNumber]}
    return types.get(option.kind, option.type) | None


class RunDidNotFinish(SubnError):
    """A run failed, was refused or cancelled, or timed out. `run` holds the reason."""

    def __init__(self, run: interface.Run) -> None:
        super().__init__(printable(describe_run(run.model_dump())))
        self.run = run


class Plan(interface.PlanForecast):
    """Forecast of a run's cost and quality, which prints as a table."""

    def __str__(self) -> str:
        return "\n".join(map(printable, describe_plan(self.model_dump())))


class Curator:
    """A connection to a curator for the holder of an operator's key."""

    def __init__(
        self, url: str | None = None, key_file: str | Path | None = None, ca_file: str | Path | None = None
    ) -> None:
        """Connect. `ca_file` is the curator's tls/ca.pem; without it and SUBN_CA_FILE, trust this machine's CAs."""
        file = key_file or os.environ.get("SUBN_KEY_FILE")
        if not file:
            raise OperatorError("no operator key: give key_file or SUBN_KEY_FILE (subn-curator init printed the key)")
        ca = ca_in(ca_file or os.environ.get("SUBN_CA_FILE"))
        self._client = CuratorClient(url or os.environ.get("SUBN_URL") or DEFAULT_URL, key_in(file), ca=ca)

    def __enter__(self) -> "Curator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.__exit__(None, None, None)

    def parties(self) -> list[interface.Party]:
        return [interface.Party.model_validate(one) for one in self._client.parties()]

    def code(self, name: str) -> interface.Code:
        """Make a one-time code with which a party of this name enrols."""
        return interface.Code.model_validate(self._client.code(name))

    def schemas(self) -> list[interface.SchemaEntry]:
        return [interface.SchemaEntry.model_validate(one) for one in self._client.schemas()]

    @with_plan_options
    def plan(self, schema: str | Path | Mapping[str, Any], epsilon: ExactNumber, **wishes: Any) -> Plan:
        """Price a run. Nothing is stored or spent. `schema` is a file, its content, or the hash of a known schema.

        The plan also tells the predicted error by epsilon.
        """
        return Plan.model_validate(self._client.plan(self._body(schema, epsilon, wishes), with_curve=True))

    @with_plan_options
    def run(
        self, schema: str | Path | Mapping[str, Any], epsilon: ExactNumber, anyway: bool = False, **wishes: Any
    ) -> "NotebookRun":
        """Start a run. It waits for its parties to join.

        With `anyway` it starts although advice says stop; the plan records the advice.
        """
        key = Stream.system().take(16).hex()
        body = self._body(schema, epsilon, wishes) | ({"anyway": True} if anyway else {})
        return NotebookRun(self._client, self._client.create_run(body, key)["run"])

    def runs(self) -> list[interface.RunEntry]:
        return [interface.RunEntry.model_validate(one) for one in self._client.runs()]

    def attach(self, run: str) -> "NotebookRun":
        """Return a run that anybody has started before."""
        return NotebookRun(self._client, str(self._client.run(run)["run"]))

    def _body(
        self, schema: str | Path | Mapping[str, Any], epsilon: ExactNumber, wishes: Mapping[str, Any]
    ) -> dict[str, Any]:
        try:
            asked = as_json({"epsilon": epsilon, **wishes})
        except ValueError as error:
            raise OperatorError(f"{error}: write it in quotes, or as a Fraction") from None
        return {"schema": self._schema_hash(schema), **asked}

    def _schema_hash(self, schema: str | Path | Mapping[str, Any]) -> str:
        if isinstance(schema, Mapping):
            return str(self._client.add_schema(json.dumps(schema).encode())["hash"])
        if isinstance(schema, str) and len(schema) == 64 and not Path(schema).exists():
            return schema
        return str(self._client.add_schema(schema_text(Path(schema)))["hash"])


class NotebookRun:
    """One run at a curator, made by `Curator.run` or `Curator.attach`."""

    def __init__(self, client: CuratorClient, run: str) -> None:
        self._client, self.id = client, run

    def __repr__(self) -> str:
        return f"NotebookRun({self.id!r})"

    def state(self) -> interface.Run:
        return interface.Run.model_validate(self._client.run(self.id))

    def events(self, after: int = 0) -> Iterator[interface.Event]:
        """Yield the run's events as they happen, until it ends."""
        return (interface.Event.model_validate(event) for event in self._client.events(self.id, after))

    def wait(self, timeout: float | None = None, show: bool = True) -> interface.Run:
        """Wait for the run and return it once finished.

        Raise RunDidNotFinish if it ends otherwise, and TimeoutError if it takes longer. The run then continues.
        """
        deadline = monotonic() + (float("inf") if timeout is None else timeout)
        screen = Screen(sys.stdout)
        while True:
            found = self._patiently(deadline)
            if show:
                screen.show(found)
            if found["state"] in ENDS:
                run = interface.Run.model_validate(found)
                if run.state != "finished":
                    raise RunDidNotFinish(run)
                return run
            if monotonic() >= deadline:
                raise TimeoutError(f"run {self.id} is still {found['state']} after {timeout:g} s")
            sleep(_POLL_SECONDS)

    def cancel(self, reason: str | None = None) -> interface.Run:
        """End the run. Epsilon that parties have spent stays spent."""
        return interface.Run.model_validate(self._client.cancel(self.id, reason))

    def table(self, rows: int | None = None) -> dict[str, list[str]]:
        """Return the published table by column, or a new table with `rows` rows, which costs no privacy."""
        header, *lines = csv.reader(self.file("table.csv", rows).decode().splitlines(keepends=True))
        return {name: [line[place] for line in lines] for place, name in enumerate(header)}

    def frame(self, rows: int | None = None) -> Any:
        """Return the published table, or a new one with `rows` rows, as a pandas.DataFrame with the schema's types.

        Categories keep their order, whole numbers and booleans may be missing, and dates are dates. Needs pandas.
        """
        from curator.operator.frames import frame_of

        return frame_of(self.file("table.parquet", rows))

    def schema(self) -> Any:
        """Return the schema of the table, with descriptions, units and labels."""
        return read_json(self.file("schema.json"))

    def network(self) -> Any:
        return read_json(self.file("network.json"), LARGEST_FILE)

    def report(self) -> Any:
        return read_json(self.file("report.json"), LARGEST_FILE)

    def verify(self, curator_key: str | None = None) -> Manifest:
        """Verify signatures, budgets and the table's hash, then return the manifest. Raise ManifestError if not proved.

        `curator_key` is the curator's key in hexadecimal digits, from an independent source. Without it, only
        consistency is verified.
        """
        table = hashlib.sha256(self.file("table.csv")).hexdigest()
        key = None if curator_key is None else bytes.fromhex(curator_key)
        return verify_manifest(self.file("manifest.json"), {"table.csv": table}, key)

    def file(self, name: str, rows: int | None = None) -> bytes:
        """Return a published file's bytes, such as those of table.parquet, codebook.csv or tables.json."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            self._client.download(self.id, name, path, rows)
            return path.read_bytes()

    def _patiently(self, deadline: float) -> dict[str, Any]:
        """Return the run. A curator that is down for a moment does not end the waiting."""
        patience = min(deadline, monotonic() + _PATIENCE)
        while True:
            try:
                found: dict[str, Any] = self._client.run(self.id)
                return found
            except CuratorUnreachable:
                if monotonic() >= patience:
                    raise
                sleep(_POLL_SECONDS)
