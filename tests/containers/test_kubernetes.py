"""The manifests for Kubernetes, as written, run under `podman kube play`: a run is finished and verified."""

import base64
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from curator.experiments.sample_data import write_sample
from tests.containers.machinery import (
    HERE,
    IMAGE,
    LOGS,
    PARTY_RULES,
    ROOT,
    Engine,
    free_port,
    own_address,
    removed_after,
    run,
    wait,
)
from tests.support.programs import SCRIPTS

HOSPITALS = ("hospital-1", "hospital-2")
ROWS = 500
NAMES = ("name", "app", "claimName", "secretName")


@dataclass
class Pods:
    """What `podman kube play` makes of the manifests of one side, under a name of the test's."""

    engine: Engine
    folder: Path
    side: str
    name: str

    def play(self, settings: dict[str, str], port: int | None = None) -> None:
        """Write what `kubectl kustomize` would, with another image, a prefix and a port of the host, and play it."""
        manifests = ROOT / self.side / "deployment" / "kubernetes"
        listed = yaml.safe_load((manifests / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
        # podman makes the volumes by itself, and refuses to make them twice.
        texts = [(manifests / name).read_text(encoding="utf-8") for name in listed if name != "storage.yaml"]
        found = [self._placed(one, settings, port) for text in texts for one in yaml.safe_load_all(text)]
        file = self.folder / f"{self.name}.yaml"
        file.write_text(yaml.safe_dump_all(found), encoding="utf-8")
        self._kube_play(file)

    def secret(self, key: str, value: str) -> None:
        """Make a secret as settings.yaml says."""
        file = self.folder / f"{self.name}-secret.json"
        file.write_text(json.dumps({key: base64.b64encode(value.encode()).decode()}), encoding="utf-8")
        self.engine("secret", "create", self.name, file)

    def inside(self, *command: str, check: bool = True) -> str:
        return self.engine("exec", f"{self.name}-pod-0-{self.side}", *command, check=check)

    def is_ready(self) -> bool:
        return self.engine.succeeds("exec", f"{self.name}-pod-0-{self.side}", f"subn-{self.side}", "ready")

    def keep_logs(self) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        done = run([self.engine.name, "logs", f"{self.name}-pod-0-{self.side}"], self.engine.environment, check=False)
        (LOGS / f"{self.name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")

    def remove(self) -> None:
        self.engine("pod", "rm", "--force", "--time", "2", "--ignore", f"{self.name}-pod-0", check=False)
        self.engine("secret", "rm", self.name, check=False)
        self.engine("volume", "rm", "--force", f"{self.name}-home", f"{self.name}-data", check=False)

    def _kube_play(self, file: Path) -> None:
        # Without systemd this may be a sandbox that allows fewer open files than `podman kube play` asks for.
        runtime = ["--runtime", HERE / "runc-within-limits"] if self.engine.settings else []
        self.engine(*runtime, "kube", "play", file)

    def _placed(self, found: Any, settings: dict[str, str], port: int | None, key: str = "") -> Any:
        if isinstance(found, dict):
            if found.get("kind") == "ConfigMap":
                found["data"] |= settings
            if "containerPort" in found:
                found["hostPort"] = port
            return {name: self._placed(value, settings, port, name) for name, value in found.items()}
        if isinstance(found, list):
            return [self._placed(one, settings, port) for one in found]
        if key == "image":
            return IMAGE
        is_own = key in NAMES and str(found).startswith(f"subn-{self.side}")
        return found.replace(f"subn-{self.side}", self.name) if is_own else found


@contextmanager
def pods(engine: Engine, folder: Path, side: str, name: str) -> Iterator[Pods]:
    made = Pods(engine, folder, side, name)
    with removed_after(made):
        yield made


@pytest.fixture
def sites(engine: Engine, tmp_path: Path) -> Iterator[Callable[[str, str], Pods]]:
    with ExitStack() as stack:
        yield lambda side, name: stack.enter_context(pods(engine, tmp_path, side, f"subn-kube-{name}"))


def test_a_run_of_the_manifests_finishes_and_is_verified(
    engine: Engine, sites: Callable[[str, str], Pods], tmp_path: Path
) -> None:
    if engine.name == "docker":  # plays no manifests
        pytest.fail("these tests need podman: install it beside docker")
    sample, port, address = tmp_path / "sample", free_port(), own_address()
    write_sample(sample, len(HOSPITALS), ROWS, seed=1)
    curator = sites("curator", "curator")
    curator.play({"SUBN_CURATOR_NAMES": f"{address},127.0.0.1"}, port)
    wait(curator.is_ready, "the curator to be ready")
    parties = {name: sites("party", name) for name in HOSPITALS}
    fingerprints = {}
    for name, party in parties.items():
        party.secret("enrolment-code", json.loads(curator.inside("subn-curator", "code", name, "--json"))["code"])
        fill(party, sample, name)
        party.play({"SUBN_PARTY_CURATOR": f"https://{address}:{port}", "SUBN_PARTY_NAME": name})
    for name, party in parties.items():
        wait(party.is_ready, f"{name} to be ready")
        fingerprints[name] = json.loads(party.inside("subn-party", "init", "--json"))["fingerprint"]
    for name, party in parties.items():
        (other,) = set(HOSPITALS) - {name}
        party.inside("subn-party", "trust", other, fingerprints[other])
    check_rights(engine, [curator, *parties.values()])
    key = curator.inside("subn-curator", "operator-key", "add", "test").strip().splitlines()[-1]
    (tmp_path / "ca.pem").write_text(curator.inside("cat", "/var/lib/dp-subn/tls/ca.pem"), encoding="utf-8")
    (tmp_path / "key").write_text(key, encoding="utf-8")
    (tmp_path / "key").chmod(0o600)
    given = {"SUBN_URL": f"https://127.0.0.1:{port}", "SUBN_CA_FILE": "ca.pem", "SUBN_KEY_FILE": "key"}

    def operator(*words: str) -> str:
        return run([str(SCRIPTS / "subn"), *words], os.environ | given, tmp_path).stdout

    begun = operator("run", "--schema", str(sample / "schema.json"), "--epsilon", "1", "--anyway", "--json")
    (run_id,) = [json.loads(line)["run"] for line in begun.splitlines() if line.startswith('{"run"')]
    for name, party in parties.items():
        wait(lambda party=party: run_id in party.inside("subn-party", "requests"), f"{name} to be asked")
        party.inside("subn-party", "accept", run_id)
    assert "finished" in operator("wait", run_id)
    operator("get", run_id, "--out", "result")
    operator("verify", "result/manifest.json")
    table = (tmp_path / "result" / "table.csv").read_text(encoding="utf-8")
    assert len(table.splitlines()) == 1 + len(HOSPITALS) * ROWS
    for party in parties.values():
        assert run_id in party.inside("subn-party", "ledger")


def fill(party: Pods, sample: Path, name: str) -> None:
    """Put the table and the rules into the party's volumes, as its data owner does."""
    sources = {"home": {}, "data": {"patients.csv": sample / f"{name}.csv", "schema.json": sample / "schema.json"}}
    (party.folder / f"{name}.toml").write_text(PARTY_RULES, encoding="utf-8")
    sources["home"] = {"party.toml": party.folder / f"{name}.toml"}
    for kind, files in sources.items():
        archive = party.folder / f"{name}-{kind}.tar"
        with tarfile.open(archive, "w") as tar:
            folder = tarfile.TarInfo("./")
            folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o700, 10001, 10001
            tar.addfile(folder)
            for place, file in files.items():
                tar.add(file, place, filter=as_the_containers_user)
        party.engine("volume", "create", f"{party.name}-{kind}")
        party.engine("volume", "import", f"{party.name}-{kind}", archive)


def as_the_containers_user(found: tarfile.TarInfo) -> tarfile.TarInfo:
    found.uid = found.gid = 10001
    found.mode = 0o600
    return found


def check_rights(engine: Engine, found: list[Pods]) -> None:
    """What the manifests ask for holds: no rights, a root that cannot be written to, limits."""
    for one in found:
        status = one.inside("cat", "/proc/1/status")
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert (facts["Uid"].split()[0], int(facts["CapBnd"], 16), facts["NoNewPrivs"]) == ("10001", 0, "1")
        assert not engine.succeeds("exec", f"{one.name}-pod-0-{one.side}", "touch", "/opt/written")
        (details,) = json.loads(engine("inspect", f"{one.name}-pod-0-{one.side}"))
        assert (details["HostConfig"]["Memory"], details["HostConfig"]["NanoCpus"]) == (2 << 30, 2_000_000_000)
