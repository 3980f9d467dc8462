"""A machine without a network: the unpacked bundle, and containers that know no image but the bundle's.

Run by `make bundle-test`, which makes the bundle and gives the tests a network namespace of their own.
"""

import os
import re
import socket
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.containers.machinery import ROOT, Engine, run

BUNDLES, MADE = ROOT / "build" / "bundle", ROOT / "build" / "bundle-test"
STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
# Locks in a file, because those in shared memory are one set for the whole machine.
MACHINE = '\nlock_type = "file"\ntmp_dir = "{folder}/tmp"\n\n[network]\nnetwork_config_dir = "{folder}/networks"\n'


@dataclass(frozen=True)
class Bundle:
    """The bundle as it is on the machine that installs it, and what its engineer was told by telephone."""

    folder: Path
    version: str
    fingerprint: str

    def shell(self, script: str, check: bool = True, **given: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"VERSION": self.version, "FINGERPRINT": self.fingerprint} | given
        return run(["bash", "-euo", "pipefail", "-c", script], environment, self.folder, check, timeout=600)

    @property
    def contents(self) -> list[str]:
        return (self.folder / "CONTENTS").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> None:
    assert [name for _, name in socket.if_nameindex()] == ["lo"], "run these tests by `make bundle-test`, as root"
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # Name servers of containers note here where they serve: those of this machine's own serve another network.
    Path("/run/containers").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/containers"], check=True)


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    (archive,) = BUNDLES.glob("*.tar")
    folder = tmp_path_factory.mktemp("bundle")
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    said = subprocess.run(["ssh-keygen", "-lf", MADE / "key.pub"], capture_output=True, text=True, check=True)
    (fingerprint,) = re.findall(r"SHA256:\S+", said.stdout)
    return Bundle(folder / f"dp-subn-{version}", version, fingerprint)


@pytest.fixture(scope="session")
def prepared() -> Engine:
    found = Engine.prepared()
    assert found.name == "podman", "the test of the bundle needs podman"
    return found


@pytest.fixture(scope="session")
def machine(prepared: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    new = engine_in(tmp_path_factory.mktemp("machine"), prepared)
    assert new("images", "--quiet") == ""
    return new


def engine_in(folder: Path, prepared: Engine) -> Engine:
    """Podman as it is on a machine that has just been installed: all that it knows lies in this folder."""
    driver = prepared("info", "--format", "{{.Store.GraphDriverName}}").strip()
    (folder / "storage.conf").write_text(STORAGE.format(driver=driver, folder=folder), encoding="utf-8")
    shared = prepared.settings.get("CONTAINERS_CONF")
    before = Path(shared).read_text(encoding="utf-8") if shared else "[engine]\n"
    (folder / "containers.conf").write_text(before + MACHINE.format(folder=folder), encoding="utf-8")
    settings = {"CONTAINERS_CONF": f"{folder}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf"}
    return Engine(prepared.name, prepared.compose, "none", {**settings, "SUBN_IMAGE": "localhost/dp-subn"})
