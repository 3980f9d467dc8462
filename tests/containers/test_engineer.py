"""docs/operating.md is true for engineers: its commands, as printed, take two hospitals to a published table."""

import re
import shutil
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from curator.experiments.sample_data import write_sample
from protocol.run.manifest import verify_manifest
from tests.containers.machinery import ROOT, Engine, Found, Project, free_port, own_address, project, run, wait
from tests.support.documents import blocks, document, section

OPERATING = document("docs/operating.md")
HOSPITALS = ("hospital-1", "hospital-2")
ROWS = 1000
# What a build needs, for engineers who have the source.
SOURCE = (".dockerignore", "Dockerfile", "LICENSE", "README.md", "crypto", "curator", "party", "protocol")
SOURCE += ("pyproject.toml", "requirements-build.lock", "requirements.lock")


CURATORS = blocks(section(OPERATING, "For the engineer of a curator"), "shell")
PARTYS = blocks(section(OPERATING, "For a hospital's engineer"), "shell")


@dataclass
class Site:
    """An organisation's machine: a folder with the source, and a shell."""

    project: Project

    def shell(self, script: str, **given: str) -> str:
        """What the commands print. Whatever stands in for `docker compose` is told that there is no terminal."""
        engine = self.project.engine
        compose = " ".join(engine.compose)
        if engine.name == "podman":
            compose += ' --podman-build-args="--network host --format docker"'
        stand_in = f"""
            set -euo pipefail
            place() {{
                local service=${{1%%:*}}
                [ "$service" != "$1" ] || {{ echo "$1"; return; }}
                local name="^{self.project.name}_${{service}}_"
                echo "$(podman ps --filter "name=$name" --format '{{{{.Names}}}}'):${{1#*:}}"
            }}
            docker() {{
                local word=$2; shift 2
                case $word in (run|exec) set -- -T "$@";; esac
                if [ $word = cp ] && [ {engine.name} = podman ]; then
                    podman cp "$(place "$1")" "$(place "$2")"
                else
                    command {compose} $word "$@"
                fi
            }}
        """
        command = [*engine.within, "bash", "-c", stand_in + script]
        done = run(command, self.project.environment | given, self.project.folder, timeout=600)
        return done.stdout + done.stderr


class Machines:
    """One folder with the source for every organisation; nothing of their containers is left in the end."""

    def __init__(self, engine: Engine, folder: Path, stack: ExitStack) -> None:
        self.engine, self.folder, self.stack = engine, folder, stack

    def site(self, name: str, **settings: str) -> Site:
        folder = self.folder / f"subn-test-{name}"
        made = self.stack.enter_context(project(self.engine, folder.name, folder, **settings))
        for source in SOURCE:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, folder / source)
        return Site(made)


@pytest.fixture
def machines(engine: Engine, tmp_path: Path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(engine, tmp_path, stack)


def test_two_hospitals_and_a_curator_reach_a_published_table_as_written(machines: Machines, tmp_path: Path) -> None:
    sample, port = tmp_path / "sample", free_port()
    write_sample(sample, len(HOSPITALS), ROWS, seed=1)
    curator = machines.site("curator")
    curator.shell(CURATORS[0], ADDRESS=own_address(), PORT=str(port))
    codes = {name: code_in(curator.shell(CURATORS[1], NAME=name)) for name in HOSPITALS}
    sites = {name: machines.site(name, **own_port()) for name in HOSPITALS}

    def set_up(name: str) -> str:
        given = {"CURATOR": f"https://{own_address()}:{port}", "NAME": name, "CODE": codes[name]}
        given |= {"TABLE": str(sample / f"{name}.csv"), "SCHEMA": str(sample / "schema.json")}
        assert "your fingerprint: " in sites[name].shell(PARTYS[0], **given)
        assert f"patients: {ROWS:,} rows fit" in sites[name].shell(PARTYS[1])
        return one_of(rf"{name} \(you\) +([0-9a-f ]{{39}})", sites[name].shell(PARTYS[2]))

    fingerprints = at_once(set_up)

    def trust(name: str) -> None:
        (other,) = set(HOSPITALS) - {name}
        said = sites[name].shell(PARTYS[3], OTHER=other, FINGERPRINT=fingerprints[other])
        assert f"noted the fingerprint of {other}" in said

    at_once(trust)
    at_once(lambda name: open_pages(sites[name], PARTYS[4]))
    shutil.copy(sample / "schema.json", curator.project.folder)
    run_id = one_of(r"^(\S+)\r?\nfollow it with", curator.shell(CURATORS[2]))

    def accept(name: str) -> None:
        wait(lambda: run_id in sites[name].project.inside("party", "subn-party", "requests"), "the request")
        sites[name].shell(PARTYS[5], RUN=run_id)

    at_once(accept)
    assert "finished" in curator.shell(CURATORS[3], RUN=run_id)
    result = curator.project.folder / "result"
    assert len((result / "table.csv").read_text(encoding="utf-8").splitlines()) == 1 + len(HOSPITALS) * ROWS
    spent = {one.name: one.spent for one in verify_manifest((result / "manifest.json").read_bytes(), {}).parties}

    def look_into_books(name: str) -> None:
        books = sites[name].shell(PARTYS[6])
        assert run_id in books
        assert f"{spent[name]}" in books

    at_once(look_into_books)
    first = sites["hospital-1"]
    first.shell(PARTYS[7], BACKUP=str(tmp_path / "home.tar.gz"))
    with tarfile.open(tmp_path / "home.tar.gz") as backup:
        assert {"home/party.toml", "home/ledger.db", "home/audit.jsonl"} <= set(backup.getnames())
    wait(lambda: first.project.is_ready("party"), "the party to be ready again")
    first.shell(PARTYS[9])
    wait(lambda: first.project.is_ready("party"), "the renewed party to be ready")
    assert run_id in first.project.inside("party", "subn-party", "ledger")


def own_port() -> dict[str, str]:
    """The hospitals' machines are one in this test, so that each publishes its pages at a port of its own."""
    port = free_port()
    return {"SUBN_PARTY_PUBLISH": f"127.0.0.1:{port}", "SUBN_PARTY_NAMES": f"127.0.0.1:{port}"}


def open_pages(site: Site, script: str) -> None:
    """As a browser of this machine does: the printed address signs in once, and another name opens nothing."""
    address = httpx.URL(one_of(r"^(http://\S+/sign-in\S+)", site.shell(script)))
    with httpx.Client(trust_env=False) as browser:
        assert browser.get(address, headers={"Host": "evil.example"}).status_code == 421
        assert browser.get(address).status_code == 200
        assert "Requests" in browser.get(address.join("/")).text
        assert browser.get(address).status_code == 401


def at_once(step: Callable[[str], Found]) -> dict[str, Found]:
    """The same at both hospitals."""
    with ThreadPoolExecutor() as together:
        return dict(zip(HOSPITALS, together.map(step, HOSPITALS), strict=True))


def code_in(printed: str) -> str:
    return one_of(r"^(\S+)\r?\nvalid once", printed)


def one_of(pattern: str, text: str) -> str:
    (found,) = set(re.findall(pattern, text, re.M))
    return str(found)
