"""Publish a finished run: table, network, noisy tables, report and signed manifest, each file whole or absent.

It does not know how runs end. The same answers and seed give the same files.
"""

import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from crypto.signing import SigningKey
from curator.files import PUBLIC, write_file
from curator.results.ahead import ahead
from curator.results.codebook import codebook_csv, codebook_html
from curator.results.csv_files import write_table
from curator.results.phases import phases
from curator.results.report import Tally, report_html, report_json
from curator.store.run_records import EventRecord, ReplyRecord, spent, spent_delta
from protocol.model.run_model import RunModel
from protocol.network.network import Family, Network
from protocol.plan.terms import Terms
from protocol.run.curator import RunState
from protocol.run.manifest import Cost, Manifest, PartyRecord, Receipt, dependence, edges, signed
from protocol.run.synthesis import fitted, published_terms, synthetic_codes
from protocol.services.schema_words import editable
from protocol.stages.knowledge import Knowledge, LocalModel, Released, counted_domain
from protocol.stages.registry import blank_columns
from protocol.tables.coding import labels
from protocol.tables.domain import Domain, FoundEdges, Merged, Variables
from protocol.tables.haar import HaarNoise
from protocol.tables.marginal import Table
from protocol.tables.text_column import TextColumn

TABLE, NETWORK, TABLES, MANIFEST = "table.csv", "network.json", "tables.json", "manifest.json"
REPORT, REPORT_PAGE = "report.json", "report.html"
SCHEMA, CODEBOOK, CODEBOOK_PAGE = "schema.json", "codebook.csv", "codebook.html"
# Files whose digests are in the manifest.
PUBLISHED = (TABLE, SCHEMA, CODEBOOK, CODEBOOK_PAGE, NETWORK, TABLES, REPORT, REPORT_PAGE)
Json = dict[str, Any]


def publish(
    folder: Path,
    state: RunState,
    replies: Sequence[ReplyRecord],
    costs: Sequence[Cost],
    seed: bytes,
    key: SigningKey,
    now: int,
) -> dict[str, str]:
    """Write all files and return their SHA-256 by name. The manifest comes last: if it exists, the others do too."""
    known = state.knowledge
    terms = published_terms(state.terms, known)
    folder.mkdir(parents=True, exist_ok=True)
    tally, finished = Tally(terms.schema.sizes), _moment(now)
    model = fitted(terms, known)
    with ThreadPoolExecutor(1, "phases") as beside:  # both leave Python's lock for much of their time
        by_phase = beside.submit(phases, terms, known, model)
        drawn = synthetic_labels(terms, known, terms.plan.rows, seed, tally, model)
        write_table(folder / TABLE, terms.schema.names, drawn)
        report = report_json(terms, known, replies, costs, tally.counts, key.public, finished, by_phase.result())
    write_file(folder / SCHEMA, editable(terms.schema), PUBLIC)
    write_file(folder / CODEBOOK, codebook_csv(terms.schema), PUBLIC)
    write_file(folder / CODEBOOK_PAGE, codebook_html(terms.schema, terms.plan.run), PUBLIC)
    for name, content in (
        (NETWORK, network_json(terms, known)),
        (TABLES, tables_json(terms, known)),
        (REPORT, report),
    ):
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"
        write_file(folder / name, text, PUBLIC)
    write_file(folder / REPORT_PAGE, report_html(report), PUBLIC)
    outputs = {name: _digest(folder / name) for name in PUBLISHED}
    manifest = _manifest(state, replies, costs, outputs, key, finished)
    write_file(folder / MANIFEST, signed(manifest, key), PUBLIC)
    outputs[MANIFEST] = _digest(folder / MANIFEST)
    return outputs


def synthetic_labels(
    terms: Terms,
    known: Knowledge,
    rows: int,
    seed: bytes,
    tally: Tally | None = None,
    model: RunModel | None = None,
) -> Iterator[list[TextColumn]]:
    """Yield a synthetic table in batches of columns, drawn ahead. The same seed gives the same table."""
    yield from ahead(_labels(terms, known, rows, seed, tally, model))


def _labels(
    terms: Terms, known: Knowledge, rows: int, seed: bytes, tally: Tally | None, model: RunModel | None
) -> Iterator[list[TextColumn]]:
    stream, schema = Stream.keyed(seed, "synthesis"), published_terms(terms, known).schema
    sampling, labelling = stream.child("rows"), stream.child("numbers within bins")
    for codes in synthetic_codes(terms, known, rows, sampling, model):
        if tally is not None:
            tally.add(codes)
        yield labels(schema, codes, labelling)


def stage_costs(replies: Sequence[ReplyRecord], events: Sequence[EventRecord]) -> list[Cost]:
    """Return the cost of every stage: work, and bytes in both directions."""
    received: Counter[str] = Counter()
    for reply in replies:
        received[reply.step] += reply.size
    found: dict[str, Cost] = {}
    for event in events:
        data = event.data
        if event.kind == "step" and data["step"]:
            former = found.get(data["stage"], Cost(name=data["stage"], cells=0, ciphertexts=0, bytes=0))
            found[data["stage"]] = Cost(
                name=former.name,
                cells=former.cells + data["cells"],
                ciphertexts=former.ciphertexts + data["ciphertexts"],
                bytes=former.bytes + data["bytes"] + received[data["step"]],
            )
    return list(found.values())


def network_json(terms: Terms, known: Knowledge) -> Json:
    """Return the networks' families by variable. With method independent, there is a network for each party."""
    networks = [model.network for model in known.models] or [known.network]
    return {
        "variables": [{"name": variable.name, "size": variable.size} for variable in terms.domain.variables],
        "edges": [edge.model_dump(mode="json") for edge in edges(terms, known)],
        "networks": [[[family.child, *family.parents] for family in network.families] for network in networks],
        "rows": [model.rows for model in known.models] or [terms.plan.total_rows],
    }


def tables_json(terms: Terms, known: Knowledge) -> Json:
    """Return all released noisy tables, with the variance of the noise in each cell. They are already private."""
    models = [[number, len(model.tables)] for number, model in enumerate(known.models)]
    return {
        "variables": [
            {"name": variable.name, "size": variable.size} for variable in counted_domain(terms, known).variables
        ],
        # Merged variables, which follow the plan's own: the variable each is made from, and the group of each category.
        "merged": _groups_json(known.merged),
        # Tables with "halved" are over halves of variables instead, which follow the plan's own in the same way.
        "halves": _groups_json(known.halves),
        # The counts of fine bins among which edges were found, and the fine bins with which the found ones begin.
        **({"grids": _grids_json(known)} if known.edges else {}),
        # How strongly columns depend on each other: a noisy number of rows.
        **({"dependence": known.dependence} if known.dependence is not None else {}),
        "models": models,  # method independent: the number of tables of each party, in order
        "tables": [
            {
                "step": one.step,
                "variables": list(one.table.variables),
                "rows": one.rows,
                "variance": one.table.variance,
                "counts": one.table.counts.ravel().tolist(),
                **({"halved": True} if one.is_halved else {}),
            }
            for one in known.released
        ],
    }


def file_sizes(folder: Path, outputs: Mapping[str, str]) -> dict[str, int]:
    """Return the sizes in bytes of the published files that still exist."""
    return {name: (folder / name).stat().st_size for name in outputs if (folder / name).is_file()}


def load_knowledge(folder: Path, terms: Terms) -> Knowledge:
    """Read back the published knowledge of a finished run, from which more synthetic rows can be drawn at any time."""
    network = json.loads((folder / NETWORK).read_text(encoding="utf-8"))
    content = json.loads((folder / TABLES).read_text(encoding="utf-8"))
    merged, halves = (
        tuple((one["variable"], tuple(one["groups"])) for one in content[name]) for name in ("merged", "halves")
    )
    grids, edges = _grids(content.get("grids", ()))
    domains = {False: terms.domain.with_merged(merged), True: terms.domain.with_merged(halves)}
    noises = {table.variables: table.noise for table in blank_columns(terms)}
    released = tuple(_released(domains, noises, one) for one in content["tables"])
    networks = [Network(tuple(Family(child, tuple(parents)) for child, *parents in n)) for n in network["networks"]]
    empty = np.zeros((terms.domain.count, terms.domain.count))
    if not content["models"]:
        known = Knowledge(empty, networks[0].families, released=released, merged=merged, halves=halves)
        return replace(known, grids=grids, edges=edges, dependence=content.get("dependence"))
    tables = iter(one.table for one in released)
    models = tuple(
        LocalModel(own, tuple(next(tables) for _ in range(count)), rows)
        for own, (_, count), rows in zip(networks, content["models"], network["rows"], strict=True)
    )
    return Knowledge(empty, released=released, models=models)


def _released(domains: Mapping[bool, Domain], noises: Mapping[Variables, HaarNoise | None], one: Json) -> Released:
    variables, is_halved = tuple(one["variables"]), one.get("halved", False)
    noise = noises.get(variables) if one["step"] == "levels" else None
    counts = np.array(one["counts"], dtype=np.int64 if noise is None else np.float64)
    table = Table(variables, counts.reshape(domains[is_halved].shape(variables)), one["variance"], noise)
    return Released(one["step"], table, one["rows"], is_halved)


def _grids_json(known: Knowledge) -> list[Json]:
    return [
        {
            "variable": variable,
            "starts": list(starts),
            "variance": grid.variance,
            "counts": grid.counts.tolist(),
        }
        for (variable, starts), grid in zip(known.edges, known.grids, strict=True)
    ]


def _grids(found: Sequence[Json]) -> tuple[tuple[Table, ...], FoundEdges]:
    grids = (Table((one["variable"],), np.array(one["counts"], dtype=np.int64), one["variance"]) for one in found)
    return tuple(grids), tuple((one["variable"], tuple(one["starts"])) for one in found)


def _groups_json(merged: Sequence[Merged]) -> list[Json]:
    return [{"variable": base, "groups": list(groups)} for base, groups in merged]


def _manifest(
    state: RunState,
    replies: Sequence[ReplyRecord],
    costs: Sequence[Cost],
    outputs: Mapping[str, str],
    key: SigningKey,
    finished: str,
) -> Manifest:
    terms = state.terms
    return Manifest(
        plan=terms.plan,
        schema_text=terms.agreed.to_json(),
        curator_key=key.public,
        parties=tuple(
            PartyRecord(
                name=member.name,
                spent=spent(replies, member.name),
                delta=spent_delta(replies, member.name),
                exchange_key=state.acceptances[number].exchange_key,
                acceptance=state.acceptances[number].signature,
                engine=state.acceptances[number].engine,
                receipts=tuple(_receipt(reply) for reply in replies if reply.party == member.name),
            )
            for number, member in enumerate(terms.plan.members)
        ),
        network=edges(terms, state.knowledge),
        phases=tuple(costs),
        dependence=dependence(terms, state.knowledge),
        outputs=outputs,
        software={"dp-subn": version("dp-subn"), "python": platform.python_version()},
        finished=finished,
    )


def _moment(now: int) -> str:
    return datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="seconds")


def _receipt(reply: ReplyRecord) -> Receipt:
    charge, delta = Fraction(reply.charge), Fraction(reply.delta)
    return Receipt(step=reply.step, charge=charge, delta=delta, reply=reply.digest, signature=reply.receipt)


def _digest(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal digits."""
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
