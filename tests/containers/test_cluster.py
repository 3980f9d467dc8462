"""`docker compose up` gives a cluster that runs both methods, outlives restarts, and keeps parties from all others."""

import http.server
import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.containers.machinery import IMAGE, ROOT, Engine, Project, free_port, own_address, project, run, wait

HOSPITALS = ("hospital-1", "hospital-2", "hospital-3")
CURATOR = "sample-curator"
SERVICES = (CURATOR, *HOSPITALS)
AWAY_SECONDS = 60
ROWS = 5000
LARGEST_IMAGE = 470_000_000  # a third of it reads and writes Parquet (pyarrow, duckdb)
ENDS = ("finished", "failed", "cancelled", "refused", "timed_out")
# Tries to connect to each place, and says what came of it.
PROBE = """
import json, socket
found = {{}}
for place in {places!r}:
    try:
        socket.create_connection((place[0], place[1]), 3).close()
        found[place[0]] = "reached"
    except OSError as error:
        found[place[0]] = type(error).__name__
print(json.dumps(found))
"""
WRITE = """
import json, os
found = {{}}
for folder in {folders!r}:
    try:
        path = os.path.join(folder, "written-by-a-test")
        open(path, "w").close()
        os.remove(path)
        found[folder] = "written"
    except OSError as error:
        found[folder] = type(error).__name__
print(json.dumps(found))
"""


@dataclass
class Cluster:
    project: Project
    http: httpx.Client

    def run(self, name: str) -> dict[str, Any]:
        answer = self.http.get(f"/v1/runs/{name}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def run_or_nothing(self, name: str) -> dict[str, Any] | None:
        """Nothing while the curator is away."""
        try:
            return self.run(name)
        except httpx.TransportError:
            return None

    def begin(self, *wishes: str) -> str:
        said = self.project.operator("run", "--schema", "schema.json", "--epsilon", "1", "--anyway", "--json", *wishes)
        (found,) = [json.loads(line) for line in said.splitlines() if line.startswith('{"run"')]
        return str(found["run"])

    def until_at(self, name: str, step: str) -> None:
        """Until this step, or a later one, is the run's."""

        def reached() -> bool:
            found = self.run_or_nothing(name)
            assert found is None or found["state"] not in ENDS, found
            return found is not None and any(p["step"] == step and p["started"] for p in found["progress"])

        wait(reached, f"{name} to be at {step}")

    def until_ended(self, name: str) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            found = self.run_or_nothing(name)
            return found if found is not None and found["state"] in ENDS else None

        return wait(ended, f"{name} to end", patience=240)

    def waits_for(self, name: str) -> list[str]:
        return [one["party"] for one in self.run(name)["waiting_for"]]

    def until_ready(self, *services: str) -> None:
        for service in services:
            wait(lambda service=service: self.project.is_ready(service), f"{service} to be ready")

    def crash(self, service: str) -> None:
        """Its main process is killed, and not by the engine, which is to notice."""
        (found,) = json.loads(self.project.engine("inspect", self.project.container(service)))
        os.kill(found["State"]["Pid"], signal.SIGKILL)

    def reached(self, service: str, *places: tuple[str, int]) -> dict[str, str]:
        found: dict[str, str] = self.project.python(service, PROBE.format(places=places))
        return found


@pytest.fixture(scope="module")
def cluster(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    port = free_port()
    settings = {"SUBN_CURATOR_PUBLISH": f"127.0.0.1:{port}", "SUBN_SAMPLE_ROWS": str(ROWS)}
    with project(engine, "subn-test-cluster", tmp_path_factory.mktemp("cluster"), **settings) as made:
        made.up(CURATOR, "sample", *HOSPITALS)
        wait(lambda: made.inside(CURATOR, "cat", "/operator/key", check=False), "the operator's key")
        key = made.inside(CURATOR, "cat", "/operator/key").strip()
        trusted = ssl.create_default_context(cadata=made.inside(CURATOR, "cat", "/operator/ca.pem"))
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", headers=headers, verify=trusted) as line:
            found = Cluster(made, line)
            found.until_ready(*SERVICES)
            yield found
    label = f"label=com.docker.compose.project={made.name}"
    for left in (["ps", "--all"], ["volume", "ls"], ["network", "ls"]):
        assert engine(*left, "--quiet", "--filter", label).split() == []


def test_every_hospital_has_enrolled_and_offered_its_rows(cluster: Cluster) -> None:
    said = cluster.project.operator("parties", "list", "--json")
    (listed,) = [json.loads(line) for line in said.splitlines() if line.startswith("[{")]
    assert {party["name"]: [offer["rows"] for offer in party["offers"]] for party in listed} == {
        name: [ROWS] for name in HOSPITALS
    }


def test_the_engines_own_health_check_is_the_services_readiness(cluster: Cluster, engine: Engine) -> None:
    for service in SERVICES:
        name = cluster.project.container(service)
        if engine.name == "podman":  # what its timer does where there is systemd
            wait(lambda name=name: engine.succeeds("healthcheck", "run", name), f"{service} to be healthy")
        (found,) = json.loads(engine("inspect", name))
        health = found["State"].get("Health") or found["State"]["Healthcheck"]
        assert health["Status"] == "healthy", (service, health)


# What a container may do


@pytest.mark.parametrize("service", SERVICES)
def test_processes_have_no_rights(cluster: Cluster, engine: Engine, service: str) -> None:
    user = ["user"] if engine.name == "podman" else ["-eo", "uid"]
    users = engine("top", cluster.project.container(service), *user).split()[1:]
    assert set(users) == {"10001"}
    status = cluster.project.inside(service, "cat", "/proc/1/status")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert facts["NoNewPrivs"] == "1"


@pytest.mark.parametrize("service", SERVICES)
def test_writing_outside_the_volumes_fails(cluster: Cluster, service: str) -> None:
    shut = ("/", "/data", "/etc", "/opt/dp-subn", "/opt/dp-subn/bin", "/usr/local", "/var")
    found = cluster.project.python(service, WRITE.format(folders=(*shut, "/var/lib/dp-subn", "/tmp")))
    assert {found.pop("/var/lib/dp-subn"), found.pop("/tmp")} == {"written"}
    assert set(found) == set(shut)
    assert set(found.values()) <= {"OSError", "PermissionError"}, found
    if service != CURATOR:
        assert found["/data"] == "OSError"  # read-only, and not only somebody else's


def test_memory_and_processes_are_limited(cluster: Cluster, engine: Engine) -> None:
    for service in SERVICES:
        (found,) = json.loads(engine("inspect", cluster.project.container(service)))
        assert found["HostConfig"]["Memory"] == 2 << 30
        assert found["HostConfig"]["PidsLimit"] == 256
        assert found["HostConfig"]["NanoCpus"] == 2_000_000_000
        (limit,) = re.findall(r"^Max processes +(\d+)", cluster.project.inside(service, "cat", "/proc/1/limits"), re.M)
        assert limit == "1024"  # where podman-compose leaves the other limit out, too
        assert found["HostConfig"]["RestartPolicy"]["Name"] == "always"


def test_a_containers_log_does_not_fill_the_disk(cluster: Cluster, engine: Engine) -> None:
    cluster.project.inside("hospital-3", "sh", "-c", "yes | head -n 800000 > /proc/1/fd/1")  # over 30 MB with the times
    (found,) = json.loads(engine("inspect", cluster.project.container("hospital-3")))
    file = Path(found["HostConfig"]["LogConfig"].get("Path") or found["LogPath"])
    wait(lambda: file.stat().st_size < 20 << 20, "the log to be begun anew")
    assert file.stat().st_size > 0


# Who reaches whom


@pytest.mark.parametrize("service", HOSPITALS)
def test_a_party_reaches_the_curator_and_no_other_party(cluster: Cluster, service: str) -> None:
    others = [name for name in HOSPITALS if name != service]
    theirs = [address for name in others for address in cluster.project.address(name).values()]
    (own_network,) = cluster.project.address(service)
    curator = cluster.project.address(CURATOR)
    elsewhere = [address for network, address in curator.items() if network != own_network]
    assert len(elsewhere) == len(HOSPITALS) + 1
    found = cluster.reached(
        service, (CURATOR, 8460), *((place, 8460) for place in (*others, *theirs, *elsewhere, "sample-operator"))
    )
    assert found.pop(CURATOR) == "reached"
    assert set(found.values()) <= {"OSError", "gaierror", "TimeoutError"}, found


def test_no_party_reaches_an_outside_address(cluster: Cluster, engine: Engine) -> None:
    with a_listener() as port:
        places = ((own_address(), port), ("1.1.1.1", 443), ("2606:4700:4700::1111", 443))
        for service in HOSPITALS:
            found = cluster.reached(service, *places)
            assert set(found.values()) <= {"OSError", "TimeoutError"}, found
        # The same question from a network that is not closed shows that there is something to reach.
        free = ("run", "--rm", "--network", f"{cluster.project.name}_edge", IMAGE, "python", "-c")
        assert json.loads(engine(*free, PROBE.format(places=places[:1]))) == {own_address(): "reached"}


def a_listener() -> Any:
    """Outside of every container: a server on this machine's own address."""

    class Listener:
        def __enter__(self) -> int:
            self.server = http.server.ThreadingHTTPServer((own_address(), 0), http.server.BaseHTTPRequestHandler)
            self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
            self.thread.start()
            return int(self.server.server_address[1])

        def __exit__(self, *_: object) -> None:
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    return Listener()


def test_nothing_but_the_curators_port_is_published(cluster: Cluster, engine: Engine) -> None:
    published = {service: engine("port", cluster.project.container(service)).strip() for service in SERVICES}
    port = cluster.http.base_url.port
    assert published == {CURATOR: f"8460/tcp -> 127.0.0.1:{port}", **dict.fromkeys(HOSPITALS, "")}


# Runs


def test_a_party_that_is_away_for_a_minute_is_waited_for_and_the_run_finishes(cluster: Cluster) -> None:
    run = cluster.begin("--method", "dp-subn")
    cluster.until_at(run, "initial/1")
    cluster.project.engine("kill", cluster.project.container("hospital-3"))
    cluster.project.engine("rm", "--force", cluster.project.container("hospital-3"))
    left = time.monotonic()
    wait(lambda: cluster.waits_for(run) == ["hospital-3"], "all others to have answered")
    cluster.project.engine("restart", cluster.project.container(CURATOR))
    cluster.crash("hospital-1")
    cluster.until_ready(CURATOR, "hospital-1", "hospital-2")
    time.sleep(max(0.0, left + AWAY_SECONDS - time.monotonic()))
    assert cluster.waits_for(run) == ["hospital-3"]
    cluster.project.up("hospital-3")
    ended = cluster.until_ended(run)
    assert ended["state"] == "finished", ended
    check_result(cluster, run, "dp-subn")


def test_containers_that_crash_and_restart_in_mid_run_lose_nothing(cluster: Cluster) -> None:
    run = cluster.begin("--method", "dp-ccbn")
    cluster.until_at(run, "candidates/1")
    cluster.crash(CURATOR)
    cluster.until_at(run, "candidates/2")
    cluster.crash("hospital-2")
    cluster.until_at(run, "candidates/3")
    cluster.project.engine("restart", cluster.project.container("hospital-3"))
    ended = cluster.until_ended(run)
    assert ended["state"] == "finished", ended
    check_result(cluster, run, "dp-ccbn")


def test_everything_comes_back_after_a_reboot(cluster: Cluster, engine: Engine) -> None:
    """All processes end at once, and then the service of podman that runs at boot starts what its policy names."""
    names = [cluster.project.container(service) for service in SERVICES]
    engine("kill", *names)
    if engine.name == "podman":
        # What podman-restart.service runs; it left `unless-stopped` out. The label spares other tests' containers.
        label = f"label=com.docker.compose.project={cluster.project.name}"
        engine("start", "--all", "--filter", "restart-policy=always", "--filter", label)
    else:
        engine("restart", *names)
    cluster.until_ready(*SERVICES)


def check_result(cluster: Cluster, run: str, method: str) -> None:
    """The operator takes it and verifies it; a party's account says the same; a changed manifest is refused."""
    folder = f"result-{method}"
    assert "table.csv" in cluster.project.operator("get", run, "--out", folder)
    assert len(desk(cluster, "cat", f"{folder}/table.csv").splitlines()) == 1 + len(HOSPITALS) * ROWS
    manifest = json.loads(desk(cluster, "cat", f"{folder}/manifest.json"))
    verify = 'subn verify "$1/manifest.json"; echo "exit code $?"'
    assert "exit code 0" in desk(cluster, "sh", "-c", verify, "sh", folder)
    forge = 'cp -r "$1" /tmp/forged && echo >> /tmp/forged/table.csv && subn verify /tmp/forged/manifest.json'
    assert "exit code 1" in desk(cluster, "sh", "-c", f'{forge}; echo "exit code $?"', "sh", folder)
    assert manifest["manifest"]["plan"]["method"] == method
    for service in HOSPITALS:
        cluster.until_ready(service)
        ledger = json.loads(cluster.project.inside(service, "subn-party", "ledger", "--json"))
        assert any(entry["run"] == run for entry in ledger["entries"])
        audit = json.loads(cluster.project.inside(service, "subn-party", "audit", "verify", "--json"))
        assert audit["problems"] == []


def desk(cluster: Cluster, *command: str) -> str:
    """What a command prints that works on the operator's desk, without any network."""
    volume = f"{cluster.project.name}_desk:/desk:ro"
    words: Sequence[str | Path] = ("run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--volume")
    return cluster.project.engine(*words, volume, "--workdir", "/desk", IMAGE, *command)


# The image


def test_the_image_is_small_and_holds_no_compiler(engine: Engine) -> None:
    (found,) = json.loads(engine("image", "inspect", IMAGE))
    assert found["Size"] < LARGEST_IMAGE
    config = found["Config"]
    assert config["User"] == "10001:10001"
    tools = ("cc", "gcc", "g++", "clang", "ld", "as", "make", "pip", "pip3", "git", "curl")
    look = f"for tool in {' '.join(tools)}; do command -v $tool && echo $tool; done; true"
    free = ("run", "--rm", "--network", "none", IMAGE)
    assert engine(*free, "sh", "-c", look) == ""
    assert engine(*free[:2], "--user", "0", *free[2:], "find", "/", "-xdev", "-perm", "/6000", "-type", "f") == ""


def test_the_image_holds_every_file_of_the_packages(engine: Engine) -> None:
    packages = ("crypto", "protocol", "party", "curator")
    listed = subprocess.run(["git", "ls-files", *packages], cwd=ROOT, capture_output=True, text=True, check=True)
    look = "import curator, pathlib; print(pathlib.Path(curator.__file__).parents[1])"
    folder = engine("run", "--rm", "--network", "none", IMAGE, "python", "-c", look).strip()
    found = engine("run", "--rm", "--network", "none", "--workdir", folder, IMAGE, "find", *packages, "-type", "f")
    assert set(listed.stdout.split()) <= set(found.split())


def test_the_image_can_talk_to_postgresql(engine: Engine) -> None:
    """It had no driver, and the error named the URL."""
    url = "postgresql://subn:word@127.0.0.1:1/subn"
    words = ("run", "--rm", "--network", "none", "--env", f"SUBN_CURATOR_DATABASE_URL={url}", IMAGE)
    done = run([engine.name, *words, "subn-curator", "init", "--home", "/tmp/home"], engine.environment, check=False)
    assert "the curator's database does not answer" in done.stderr
    assert "word" not in done.stderr.replace("password", "")


def test_the_image_asks_for_readiness_by_itself(engine: Engine) -> None:
    (found,) = json.loads(engine("image", "inspect", IMAGE))
    health = found.get("Healthcheck") or found["Config"]["Healthcheck"]
    assert "ready" in " ".join(health["Test"])
