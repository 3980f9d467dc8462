"""Containers for tests: an engine that works here, the image, and projects of docker-compose.yml that leave nothing.

It does not know what is expected of them.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LOGS = ROOT / "build" / "container-logs"
IMAGE = "dp-subn-tested"
PARTY_RULES = """
[datasets.patients]
source = "/data/patients.csv"
schema = "/data/schema.json"
epsilon_total = "1"

[policy]
accept = "ask"
epsilon_per_run = "1"
smallest_rows = 100
"""
Found = TypeVar("Found")


@dataclass(frozen=True)
class Engine:
    """docker or podman, with what goes with it, as `prepare` found them."""

    name: str
    compose: tuple[str, ...]
    base: str  # the base image, or a stand-in for it
    settings: dict[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()  # what a command starts with where it is to run on another machine

    @classmethod
    def prepared(cls) -> "Engine":
        done = subprocess.run([HERE / "prepare"], stdout=subprocess.PIPE, text=True, check=True, timeout=900)
        found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        settings = {"CONTAINERS_CONF": found["CONTAINERS_CONF"]} if found.get("CONTAINERS_CONF") else {}
        return cls(found["ENGINE"], tuple(found["COMPOSE"].split()), found["SUBN_BASE"], settings)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SUBN_IMAGE": IMAGE, "SUBN_BASE": self.base, **self.settings}

    def __call__(self, *words: str | Path, check: bool = True, timeout: float = 120) -> str:
        """What the engine prints."""
        return run([*self.within, self.name, *map(str, words)], self.environment, check=check, timeout=timeout).stdout

    def succeeds(self, *words: str | Path) -> bool:
        return run([*self.within, self.name, *map(str, words)], self.environment, check=False).returncode == 0

    def build(self) -> None:
        # The docker format keeps HEALTHCHECK, which podman's own leaves out.
        form = ["--format", "docker"] if self.name == "podman" else []
        given = ["--build-arg", f"SUBN_BASE={self.base}"]
        self("build", *form, *given, "--network", "host", "--tag", IMAGE, ROOT, timeout=900)


def run(
    command: Sequence[str], environment: dict[str, str], cwd: Path = ROOT, check: bool = True, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert not check or done.returncode == 0, f"{shlex.join(command)}: {done.stdout}{done.stderr}"
    return done


@dataclass
class Project:
    """One set of containers made by docker-compose.yml in a folder of its own."""

    engine: Engine
    name: str
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def compose(self, *words: str, check: bool = True, timeout: float = 120) -> str:
        command = [
            *self.engine.within,
            *self.engine.compose,
            "--file",
            "docker-compose.yml",
            "--project-name",
            self.name,
            *words,
        ]
        return run(command, self.environment, self.folder, check, timeout).stdout

    def up(self, *services: str) -> None:
        """Start services as docs/operating.md says: podman-compose 1.0 has to be told of the limit of processes."""
        limit = ["--podman-run-args=--pids-limit=256"] if self.engine.name == "podman" else []
        self.compose(*limit, "up", "--detach", *services)

    @property
    def environment(self) -> dict[str, str]:
        return {**self.engine.environment, **self.settings}

    def operator(self, *words: str) -> str:
        """What the sample's operator is told. podman-compose before 1.1 does not pass on its exit code."""
        return self.compose("run", "--rm", "--no-deps", "-T", "sample-operator", *words)

    def containers(self, service: str) -> list[str]:
        labels = {"com.docker.compose.project": self.name, "com.docker.compose.service": service}
        filters = [word for name, value in labels.items() for word in ("--filter", f"label={name}={value}")]
        return self.engine("ps", "--all", *filters, "--format", "{{.Names}}").split()

    def container(self, service: str) -> str:
        (name,) = self.containers(service)
        return name

    def inside(self, service: str, *command: str, check: bool = True) -> str:
        """What a command prints in a service's running container."""
        return self.engine("exec", self.container(service), *command, check=check)

    def is_ready(self, service: str) -> bool:
        """As the container's health check finds it; a container that is just starting is not."""
        command = "subn-curator" if service.endswith("curator") else "subn-party"
        return any(self.engine.succeeds("exec", name, command, "ready") for name in self.containers(service))

    def python(self, service: str, program: str) -> Any:
        """What a Python program prints there, as JSON."""
        return json.loads(self.inside(service, "python", "-c", program))

    def address(self, service: str) -> dict[str, str]:
        """Of a container, by network."""
        (found,) = json.loads(self.engine("inspect", self.container(service)))
        return {name: net["IPAddress"] for name, net in found["NetworkSettings"]["Networks"].items()}

    def keep_logs(self) -> None:
        """For whoever wants to know why a test failed."""
        LOGS.mkdir(parents=True, exist_ok=True)
        label = f"label=com.docker.compose.project={self.name}"
        for name in self.engine("ps", "--all", "--filter", label, "--format", "{{.Names}}").split():
            done = run([*self.engine.within, self.engine.name, "logs", name], self.environment, check=False)
            (LOGS / f"{name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")

    def remove(self) -> None:
        """Everything that carries the project's label, whatever state it is in."""
        label = f"label=com.docker.compose.project={self.name}"
        if containers := self.engine("ps", "--all", "--quiet", "--filter", label).split():
            self.engine("rm", "--force", "--volumes", *containers, check=False)
        for kind in ("volume", "network"):
            if found := self.engine(kind, "ls", "--quiet", "--filter", label).split():
                self.engine(kind, "rm", *found, check=False)


class Removable(Protocol):
    def keep_logs(self) -> None: ...

    def remove(self) -> None: ...


@contextmanager
def removed_after(made: Removable) -> Iterator[None]:
    made.remove()  # what a killed test run may have left
    try:
        yield
    finally:
        made.keep_logs()
        made.remove()


@contextmanager
def project(engine: Engine, name: str, folder: Path, **settings: str) -> Iterator[Project]:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docker-compose.yml", folder)
    made = Project(engine, name, folder, settings)
    with removed_after(made):
        yield made


def wait(look: Callable[[], Found | None], what: str, patience: float = 180) -> Found:
    deadline = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {patience:g} s in vain for {what}"
        time.sleep(0.1)
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def own_address() -> str:
    """This machine's, towards the world; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("192.0.2.1", 9))
        return str(line.getsockname()[0])
