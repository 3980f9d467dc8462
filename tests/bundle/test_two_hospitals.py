"""docs/offline.md and docs/operating.md are true for organisations that share nothing but a wire.

A curator on PostgreSQL and two hospitals behind proxies of their own (one asks for a password, one reads TLS) install
the bundle, publish a table, go to a newer bundle and lose their power in mid-run, and come back from their backups.
"""

import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, sync_playwright

from curator.experiments.sample_data import write_sample
from curator.home.x509 import new_ca, utc_now
from protocol.run.manifest import verify_manifest
from tests.browser.conftest import ARGUMENTS, PROGRAMS
from tests.bundle.conftest import Bundle
from tests.bundle.machines import Machine
from tests.bundle.test_bundle import ARCHITECTURE, CHECK, LOAD, PAGE
from tests.containers.machinery import Engine, Project, wait
from tests.containers.test_cluster import Cluster
from tests.containers.test_engineer import CURATORS, OPERATING, PARTYS, ROWS, Site, at_once, code_in, one_of
from tests.containers.test_postgres import BACKUP, RESTORE, START
from tests.containers.test_postgres import IMAGE as DATABASE
from tests.networks.wire import Wire
from tests.support.documents import blocks, section
from tests.support.forward_proxy import forward_proxy, showing

(NEWER,) = blocks(section(PAGE, "Going to a newer bundle"), "shell")
(PROXY,) = blocks(section(OPERATING, "A proxy on the way to the curator"), "")
PROXIES, CURATOR = "10.77.0.254", "10.77.0.1"
ADDRESSES = {"hospital-1": "10.77.0.11", "hospital-2": "10.77.0.12"}
PORT = 8460
PASSWORD = "hospital:s3cret"
NEXT = "9.9.9"  # the newer bundle's version: the same programs under another number
NEWER_IMAGE = """
FROM localhost/dp-subn
USER 0
RUN sed -i 's/^Version: .*/Version: {version}/' /opt/dp-subn/lib/python3*/site-packages/dp_subn-*.dist-info/METADATA
USER 10001:10001
"""


def without_build(script: str) -> str:
    """As docs/offline.md says: the image has been loaded."""
    return "".join(line for line in script.splitlines(keepends=True) if not line.startswith("docker compose build"))


class Organisation:
    """A machine, the bundle unpacked on it, and its engineer's shell."""

    def __init__(self, machine: Machine, bundle: Bundle, name: str, **settings: str) -> None:
        self.machine, self.bundle, self.service = machine, bundle, "curator" if name == "curator" else "party"
        folder = machine.folder / f"site-{name}"
        shutil.copytree(bundle.folder, folder)
        self.site = Site(Project(machine.engine, folder.name, folder, settings))

    def shell(self, script: str, **given: str) -> str:
        return self.site.shell(without_build(script), **given)

    def load(self) -> None:
        told = {"VERSION": self.bundle.version, "FINGERPRINT": self.bundle.fingerprint, "ARCHITECTURE": ARCHITECTURE}
        assert self.bundle.fingerprint in self.shell(CHECK, **told)
        assert f"image {ARCHITECTURE} {one_of('^([0-9a-f]{64})$', self.shell(LOAD, **told))}" in self.bundle.contents

    def go_to(self, newer: Path) -> None:
        """The newer bundle's image is loaded in its own folder, as the first one's was."""
        given = {"VERSION": NEXT, "ARCHITECTURE": ARCHITECTURE, "BUNDLE": str(newer), "SERVICE": self.service}
        self.shell(f'(cd "$BUNDLE"\n{LOAD})\n{NEWER}', **given)
        assert NEXT in self.inside(f"subn-{self.service}", "--version")

    def is_ready(self) -> bool:
        return self.site.project.is_ready(self.service)

    def inside(self, *words: str) -> str:
        return self.site.project.inside(self.service, *words)


class Country:
    """Everybody, and what they know of each other."""

    def __init__(self, folder: Path, wire: Wire, prepared: Engine, bundle: Bundle, stack: ExitStack) -> None:
        self.folder, self.wire, self.prepared, self.bundle, self.stack = folder, wire, prepared, bundle, stack
        self.authority = new_ca(utc_now())
        reads_tls = showing(self.authority, CURATOR, folder)
        self.proxies = {
            "hospital-1": stack.enter_context(forward_proxy(PASSWORD, host=PROXIES)),
            "hospital-2": stack.enter_context(forward_proxy(inspecting=reads_tls, host=PROXIES)),
        }
        self.curator = self.organisation("curator", CURATOR, SUBN_DATABASE_IMAGE=DATABASE)
        self.hospitals = {name: self.organisation(name, at, PROXIES) for name, at in ADDRESSES.items()}
        self.sample = folder / "sample"
        write_sample(self.sample, len(ADDRESSES), ROWS, seed=1)
        self.backups = {name: str(folder / f"{name}.tar.gz") for name in ADDRESSES}

    def organisation(self, name: str, address: str, reaches: str = "", **settings: str) -> Organisation:
        machine = Machine(self.wire, address, self.prepared, self.folder / name, reaches)
        machine.switch_on()
        self.stack.callback(machine.switch_off)
        made = Organisation(machine, self.bundle, name, **settings)
        self.stack.callback(lambda: made.machine.is_on and made.site.project.keep_logs())
        assert machine.engine("images", "--quiet") == ""
        return made

    @property
    def everybody(self) -> dict[str, Organisation]:
        return {"curator": self.curator, **self.hospitals}

    # The curator

    def load_database(self) -> None:
        """The image that stands in for the official one comes by another way than the bundle, as the document says."""
        archive = self.folder / "database.tar"
        if not archive.exists():
            self.prepared("save", "--output", archive, DATABASE, timeout=600)
        self.curator.machine.engine("load", "--quiet", "--input", archive, timeout=600)

    def start_curator(self) -> None:
        self.load_database()
        self.curator.shell(START, ADDRESS=CURATOR, PORT=str(PORT))

    def watched(self) -> Cluster:
        """The operator's view, from a machine on the same wire."""
        key = self.curator.inside("cat", "/operator/key").strip()
        trusted = ssl.create_default_context(cadata=self.curator.inside("cat", "/operator/ca.pem"))
        headers = {"Authorization": f"Bearer {key}"}
        line = httpx.Client(base_url=f"https://{CURATOR}:{PORT}", headers=headers, verify=trusted, trust_env=False)
        return Cluster(self.curator.site.project, self.stack.enter_context(line))

    # Hospitals

    def set_up(self, name: str) -> str:
        """Up to the fingerprint that the data owner reads to the other one."""
        hospital = self.hospitals[name]
        code = code_in(self.curator.shell(CURATORS[1], NAME=name))
        given = {"CURATOR": f"https://{CURATOR}:{PORT}", "NAME": name, "CODE": code}
        given |= {"TABLE": str(self.sample / f"{name}.csv"), "SCHEMA": str(self.sample / "schema.json")}
        assert "your fingerprint: " in hospital.shell(PARTYS[0], **given)
        self.name_proxy(name)
        assert f"patients: {ROWS:,} rows fit" in hospital.shell(PARTYS[1])
        if self.proxies[name].inspecting is not None:
            self.have_inspection_ended(name)
        return one_of(rf"{name} \(you\) +([0-9a-f ]{{39}})", hospital.shell(PARTYS[2]))

    def name_proxy(self, name: str) -> None:
        """In `.env` where the proxy asks for a password, in party.toml where it has an authority of its own."""
        site, url = self.hospitals[name].site.project.folder, self.proxies[name].url
        if name == "hospital-1":
            with (site / ".env").open("a") as file:
                file.write(f"SUBN_PARTY_PROXY={url}\n")
            return
        home = site / "site" / "home"
        (home / "hospital-ca.pem").write_text(self.authority.certificate_pem)
        shutil.chown(home / "hospital-ca.pem", 10001, 10001)
        with (home / "party.toml").open("a") as file:
            file.write("\n" + PROXY.replace("http://NAME:PASSWORD@proxy.hospital.example:3128", url))

    def have_inspection_ended(self, name: str) -> None:
        """The pin holds, the engineer is told who reads along, and the network's people exempt the address."""
        hospital = self.hospitals[name]
        up, ready = PARTYS[2].splitlines()[:2]
        said = hospital.shell(f"{up}\n{ready} || true\n{PARTYS[2].splitlines()[2]} || true")
        assert said.count("a proxy that reads TLS stands in between") == 2, said
        assert "somebody is intercepting" not in said
        self.proxies[name].inspecting = None

    def decide_in_browser(self, name: str, run: str) -> None:
        with self.browser(name) as page:
            page.get_by_role("link", name="Read and decide").click()
            page.get_by_role("heading", name=run).wait_for()
            page.get_by_role("button", name=re.compile("^Accept")).click()
            page.get_by_text(re.compile("accepted, about to join|under way")).first.wait_for()

    def browser(self, name: str) -> "Browsing":
        """A browser on the hospital's machine, signed in at the address that `page` prints."""
        hospital = self.hospitals[name]
        address = one_of(r"^(http://127\.0\.0\.1:8470/sign-in\S+)", hospital.shell(PARTYS[4]))
        return Browsing(hospital.machine, address)

    # All together

    def begin(self) -> str:
        schema = self.sample / "schema.json"
        shutil.copy(schema, self.curator.site.project.folder)
        run = one_of(r"^(\S+)\r?\nfollow it with", self.curator.shell(CURATORS[2]))
        for hospital in self.hospitals.values():
            wait(lambda it=hospital: run in it.inside("subn-party", "requests"), "the request", patience=120)
        self.hospitals["hospital-1"].shell(PARTYS[5], RUN=run)
        self.decide_in_browser("hospital-2", run)
        return run

    def publish(self, run: str) -> None:
        assert "finished" in self.curator.shell(CURATORS[3], RUN=run)
        result = self.curator.site.project.folder / "result"
        assert len((result / "table.csv").read_text().splitlines()) == 1 + len(ADDRESSES) * ROWS
        spent = {one.name: one.spent for one in verify_manifest((result / "manifest.json").read_bytes(), {}).parties}
        shutil.rmtree(result)
        for name, hospital in self.hospitals.items():
            books = hospital.shell(PARTYS[6])
            assert run in books
            assert f"{spent[name]}" in books

    def until_ready(self) -> None:
        for name, one in self.everybody.items():
            wait(lambda it=one: it.is_ready(), f"{name} to be ready", patience=240)

    def newer_bundle(self) -> Path:
        """What differs from the first: the image, under another version."""
        folder, engine = self.folder / f"dp-subn-{NEXT}", self.curator.machine.engine
        (folder / "images").mkdir(parents=True)
        shutil.copy(self.bundle.folder / "docker-compose.yml", folder)
        (folder / "Dockerfile").write_text(NEWER_IMAGE.format(version=NEXT))
        names = [f"localhost/dp-subn:{NEXT}", "localhost/dp-subn:latest"]
        engine(
            "build",
            "--format",
            "docker",
            "--network",
            "none",
            "--tag",
            names[0],
            "--tag",
            names[1],
            folder,
            timeout=600,
        )
        engine("save", "--multi-image-archive", "--output", folder / "image.tar", *names, timeout=600)
        engine("tag", f"localhost/dp-subn:{self.bundle.version}", names[1])
        engine("rmi", names[0])
        archive = folder / "images" / f"dp-subn-{NEXT}-{ARCHITECTURE}.tar"
        (folder / "image.tar").rename(archive)
        subprocess.run(["gzip", "-1", archive], check=True)
        return folder


class Browsing:
    """One page of a real browser on a machine, signed in."""

    def __init__(self, machine: Machine, address: str) -> None:
        self.machine, self.address = machine, address

    def __enter__(self) -> Page:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        assert program is not None, "no browser is installed: `make browser` says how to get one"
        there = self.machine.folder / "browser"
        there.write_text(f'#!/bin/sh\nexec {self.machine.enter} {program} "$@"\n')
        there.chmod(0o755)
        self.playwright = sync_playwright().start()
        self.found = self.playwright.chromium.launch(executable_path=there, args=list(ARGUMENTS), timeout=120_000)
        page = self.found.new_page()
        page.set_default_timeout(60_000)
        page.goto(self.address)
        page.get_by_role("heading", level=1).wait_for()
        return page

    def __exit__(self, *_: object) -> None:
        self.found.close()
        self.playwright.stop()


@pytest.fixture
def country(bundle: Bundle, prepared: Engine, tmp_path: Path) -> Iterator[Country]:
    wire = Wire(tmp_path)
    wire.resolv.write_text("")
    wire.attach(PROXIES)
    with ExitStack() as stack:
        stack.callback(wire.close)
        folder = tmp_path / "country"
        folder.mkdir()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Country(folder, wire, prepared, bundle, stack)


def test_two_hospitals_behind_proxies_and_a_curator_on_postgresql(country: Country) -> None:
    for one in country.everybody.values():
        one.load()
    country.start_curator()
    fingerprints = at_once(country.set_up)
    for name, hospital in country.hospitals.items():
        (other,) = set(country.hospitals) - {name}
        hospital.shell(PARTYS[3], OTHER=other, FINGERPRINT=fingerprints[other])
        assert not reaches(hospital.machine, CURATOR), "the proxy is the only way out"
        assert "through the proxy" in hospital.inside("subn-party", "doctor")
    newer = country.newer_bundle()
    interrupted_run(country, newer)
    party_from_its_backup(country)
    curator_from_its_backup(country)
    country.publish(country.begin())


def reaches(machine: Machine, address: str) -> bool:
    look = f"import socket; socket.create_connection(({address!r}, {PORT}), 5)"
    done = subprocess.run([str(machine.enter), sys.executable, "-c", look], capture_output=True, check=False)
    return done.returncode == 0


def interrupted_run(country: Country, newer: Path) -> None:
    """A hospital is cut off in mid-run. Everybody takes the newer bundle, loses power, and the run goes on."""
    country.wire.set(ADDRESSES["hospital-2"], delay=0.2)
    run, operator = country.begin(), country.watched()
    wait(lambda: operator.run(run)["state"] == "running", "the run to be under way")
    country.wire.cut(ADDRESSES["hospital-2"])
    wait(lambda: operator.waits_for(run) == ["hospital-2"], "all others to have answered")
    for name, one in country.everybody.items():
        if name != "hospital-2":  # which is not ready as long as it is cut off
            one.go_to(newer)
    for one in country.everybody.values():
        one.machine.switch_off()
    for one in country.everybody.values():
        one.machine.boot()
    country.until_ready()
    country.hospitals["hospital-2"].go_to(newer)
    country.publish(run)


def party_from_its_backup(country: Country) -> None:
    hospital, backup = country.hospitals["hospital-1"], country.backups["hospital-1"]
    hospital.shell(PARTYS[7], BACKUP=backup)
    wait(lambda: hospital.is_ready(), "the party to be ready after its backup")
    hospital.shell(PARTYS[8], BACKUP=backup)
    wait(lambda: hospital.is_ready(), "the restored party to be ready")
    assert "the ledger knows all" in hospital.inside("subn-party", "doctor")


def curator_from_its_backup(country: Country) -> None:
    """On a new machine at the old address, with nothing but the bundle, `.env`, `site` and the two halves."""
    old = country.curator
    old.shell(BACKUP)
    told = old.inside("subn-curator", "certificate", "show")
    kept = country.folder / "kept"
    kept.mkdir()
    folder = old.site.project.folder
    subprocess.run(["cp", "-a", ".env", "site", "curator.dump", "curator.backup", kept], cwd=folder, check=True)
    old.machine.switch_off()
    shutil.move(old.machine.folder, country.folder / "broken")
    country.curator = country.organisation("curator", CURATOR, SUBN_DATABASE_IMAGE=DATABASE)
    subprocess.run(["cp", "-a", f"{kept}/.", country.curator.site.project.folder], check=True)
    country.curator.load()
    country.load_database()
    assert "is as it was at" in country.curator.shell(RESTORE)
    assert country.curator.inside("subn-curator", "certificate", "show") == told
    country.until_ready()
