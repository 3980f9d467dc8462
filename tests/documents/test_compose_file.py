"""docker-compose.yml as it is written: it meets the schema of the specification, and keeps parties apart."""

import copy
import json
import re
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from jsonschema.validators import validator_for

ROOT = Path(__file__).parents[2]
FILE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
HOSPITALS = ("hospital-1", "hospital-2", "hospital-3")
PARTIES = (*HOSPITALS, "party")
CURATORS = ("curator", "sample-curator")


@pytest.fixture(scope="module")
def schema() -> Any:
    """The compose specification's, as check-jsonschema carries it."""
    place = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    return json.loads(place.read_text(encoding="utf-8"))


def test_it_meets_the_specifications_schema(schema: Any) -> None:
    assert [error.message for error in validator_for(schema)(schema).iter_errors(FILE)] == []


def test_the_schema_refuses_what_is_no_compose_file(schema: Any) -> None:
    for path, value in ((["services", "curator", "portz"], []), (["networks", "edge"], 7), (["services"], [])):
        broken = copy.deepcopy(FILE)
        place = broken
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_closed(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["networks"]
    assert not {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc", "userns_mode"} & set(service)
    assert "docker.sock" not in json.dumps(service)


def test_an_organisations_curator_gets_no_network_of_a_made_up_hospital() -> None:
    for name in ("curator", "operator"):
        assert not set(SERVICES[name]["networks"]) & set(HOSPITALS)
        assert SERVICES[name]["profiles"] == ["organisation"]


def test_all_services_run_one_image() -> None:
    own = {name: service for name, service in SERVICES.items() if name != "database"}
    assert len({(service["image"], json.dumps(service["build"])) for service in own.values()}) == 1


def test_the_database_is_on_a_network_with_the_curator_alone_and_its_image_is_pinned() -> None:
    assert SERVICES["database"]["networks"] == ["database"]
    assert {name for name, service in SERVICES.items() if "database" in service["networks"]} == {"curator", "database"}
    assert FILE["networks"]["database"] == {"internal": True}
    assert re.search(r"@sha256:[0-9a-f]{64}}$", SERVICES["database"]["image"])
    assert re.search(r"^ARG SUBN_BASE=\S+@sha256:[0-9a-f]{64}$", (ROOT / "Dockerfile").read_text("utf-8"), re.M)


def test_services_that_serve_say_whether_they_are_ready_and_start_again() -> None:
    """`always` is the policy by which podman's service starts containers after a reboot."""
    for name in (*CURATORS, *PARTIES):
        assert "ready" in SERVICES[name]["healthcheck"]["test"]
        assert SERVICES[name]["restart"] == "always"


def test_only_curators_and_the_pages_of_a_real_party_are_published_and_by_default_to_this_machine_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    curators = {name: ["${SUBN_CURATOR_PUBLISH:-127.0.0.1:8460}:8460"] for name in CURATORS}
    assert published == curators | {"party": ["${SUBN_PARTY_PUBLISH:-127.0.0.1:8470}:8470"]}


def test_a_hospital_shares_a_network_with_the_curator_only_and_it_leads_nowhere() -> None:
    for name in HOSPITALS:
        (network,) = SERVICES[name]["networks"]
        assert {other for other, service in SERVICES.items() if network in service["networks"]} == {
            name,
            "sample-curator",
        }
        assert FILE["networks"][network] == {"internal": True}


def test_no_two_parties_share_a_network_or_a_volume() -> None:
    for one, other in combinations(PARTIES, 2):
        assert not set(SERVICES[one]["networks"]) & set(SERVICES[other]["networks"])
        assert not sources(one) & sources(other)


def test_a_partys_volumes_are_its_own() -> None:
    """But for the program that makes up the sample, once."""
    for name in PARTIES:
        sharing = {other for other in SERVICES if other != name and sources(other) & sources(name)}
        assert sharing <= {"sample"}


def test_tables_are_mounted_read_only() -> None:
    for name in PARTIES:
        assert [read_only for _, target, read_only in mounts(name) if target == "/data"] == [True]


def test_secrets_are_files() -> None:
    for service in SERVICES.values():
        for name in service.get("environment", {}):
            assert name.endswith("_FILE") or not any(word in name for word in ("KEY", "CODE", "PASSWORD", "SECRET"))
    assert all(set(secret) == {"file"} for secret in FILE["secrets"].values())


def sources(service: str) -> set[str]:
    return {source for source, _, _ in mounts(service)}


def mounts(service: str) -> list[tuple[str, str, bool]]:
    """Source, target, and whether it is read-only."""
    found = []
    for volume in SERVICES[service]["volumes"]:
        if isinstance(volume, dict):
            found.append((volume["source"], volume["target"], volume.get("read_only", False)))
        else:
            source, target, *options = volume.split(":")
            found.append((source, target, options == ["ro"]))
    return found


def test_what_an_organisation_mounts_never_gets_into_an_image() -> None:
    """Its folders lie outside of everything that a build is sent."""
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignore[0] == "*"
    sent = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    mounted = [source for source, _, _ in mounts("party")] + [FILE["secrets"]["enrolment-code"]["file"]]
    folders = {re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", source).split("/")[1] for source in mounted}
    assert folders == {"site"}
    assert not folders & sent
