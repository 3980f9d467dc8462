"""The units for systemd and podman: they hold what docker-compose.yml holds, and systemd finds no fault in them."""

import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))[
    "services"
]
PROGRAMS = {"curator": "subn-curator serve", "party": "subn-party serve"}
CONTAINERS = {"curator": "subn-curator serve", "party": "subn-party start"}


def unit(side: str, kind: str) -> dict[str, dict[str, list[str]]]:
    """Sections with their settings; a setting may be repeated."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in file_of(side, kind).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.setdefault(name, []).append(value)
    return found


def file_of(side: str, kind: str) -> Path:
    return ROOT / side / "deployment" / f"subn-{side}.{kind}"


@pytest.mark.parametrize("side", PROGRAMS)
@pytest.mark.parametrize("kind", ["service", "container"])
def test_what_ends_or_is_rebooted_starts_again(side: str, kind: str) -> None:
    found = unit(side, kind)
    assert found["Service"]["Restart"] == ["always"]
    assert found["Install"]["WantedBy"] == ["multi-user.target"]


@pytest.mark.parametrize("side", PROGRAMS)
def test_a_service_without_containers_is_as_closed_as_a_container(side: str) -> None:
    found = unit(side, "service")["Service"]
    assert found["ExecStart"] == [f"/opt/dp-subn/bin/{PROGRAMS[side]}"]
    assert (found["User"], found["CapabilityBoundingSet"], found["NoNewPrivileges"]) == (["subn"], [""], ["yes"])
    assert (found["ProtectSystem"], found["MemoryMax"], found["TasksMax"]) == (["strict"], ["2G"], ["256"])


@pytest.mark.parametrize("side", PROGRAMS)
def test_systemd_finds_no_fault(side: str, tmp_path: Path) -> None:
    """Where there is systemd. Its programs lie elsewhere here, and its user need not exist."""
    verify = shutil.which("systemd-analyze")
    text = file_of(side, "service").read_text(encoding="utf-8")
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert set(parser.sections()) == {"Unit", "Service", "Install"}
    if verify is None:
        return
    here = tmp_path / f"subn-{side}.service"
    here.write_text(text.replace("/opt/dp-subn/bin/", "/bin/true ").replace("User=subn", "User=daemon"))
    done = subprocess.run([verify, "verify", "--man=no", str(here)], capture_output=True, text=True, timeout=60)
    assert [line for line in done.stderr.splitlines() if here.name in line] == []


@pytest.mark.parametrize("side", CONTAINERS)
def test_a_quadlet_is_as_closed_as_the_compose_file(side: str) -> None:
    found, service = unit(side, "container")["Container"], SERVICES[side]
    assert found["Exec"] == [CONTAINERS[side]]
    assert (found["ReadOnly"], found["DropCapability"], found["NoNewPrivileges"]) == (["true"], ["all"], ["true"])
    assert found["Tmpfs"] == service["tmpfs"]
    logs = service["logging"]["options"]["max-size"]
    assert found["PodmanArgs"] == [f"--memory=2g --pids-limit={service['pids_limit']} --log-opt=max-size={logs}"]
    if side == "party":
        assert found["PublishPort"] == ["127.0.0.1:8470:8470"]
