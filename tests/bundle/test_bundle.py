"""docs/offline.md is true where there is no network: the bundle is checked, installed in both ways, and used."""

import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.bundle.conftest import MADE, Bundle
from tests.containers.machinery import Engine, project, wait
from tests.support.documents import blocks, document, section

PAGE = document("docs/offline.md")
(CHECK,) = blocks(section(PAGE, "Checking it"), "shell")
(LOAD,) = blocks(section(PAGE, "Installing it with containers"), "shell")
(PROGRAMS,) = blocks(section(PAGE, "Installing it without containers"), "shell")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
HOSPITALS = ("hospital-1", "hospital-2", "hospital-3")


def test_a_second_bundle_of_the_commit_has_the_same_checksums(bundle: Bundle) -> None:
    first = (MADE / "first").read_text(encoding="utf-8").splitlines()
    again = (bundle.folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert sorted(set(first) ^ set(again)) == []
    assert len(first) > 50


# Checking


def test_the_bundle_is_as_it_was_signed(bundle: Bundle) -> None:
    assert bundle.shell(CHECK).stdout == f'Good "dp-subn" signature with ED25519 key {bundle.fingerprint}\n'
    listed = {line.split("  ")[1] for line in (bundle.folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()}
    found = {f"./{path.relative_to(bundle.folder)}" for path in bundle.folder.rglob("*") if path.is_file()}
    assert found - listed == {"./SHA256SUMS", "./SHA256SUMS.sig"}


def test_another_key_a_changed_list_and_a_changed_file_are_found(bundle: Bundle, tmp_path: Path) -> None:
    assert bundle.shell(CHECK, check=False, FINGERPRINT="SHA256:" + "A" * 43).returncode != 0
    small = Bundle(tmp_path / "copy", bundle.version, bundle.fingerprint)
    shutil.copytree(bundle.folder, small.folder)
    for name in ("SHA256SUMS", "docs/operating.md", f"images/dp-subn-{bundle.version}-{ARCHITECTURE}.tar.gz"):
        before = (small.folder / name).read_bytes()
        (small.folder / name).write_bytes(before[:-2] + b"?\n")
        assert small.shell(CHECK, check=False).returncode != 0, name
        (small.folder / name).write_bytes(before)
    assert small.shell(CHECK, check=False).returncode == 0


# What is in it


def test_the_lists_of_parts_are_valid_and_complete(bundle: Bundle) -> None:
    parts = {path.stem: read_sbom(path) for path in (bundle.folder / "sbom").iterdir()}
    assert set(parts) == {"python", f"image-{ARCHITECTURE}"}
    image, pinned = parts[f"image-{ARCHITECTURE}"], parts["python"]
    assert pinned <= image
    assert {"python", "libc6", "openssl", "dp-subn"} <= {name for name, _ in image}
    for name, version in pinned:
        for tag in ("x86_64", "aarch64", "any"):
            wheels = list((bundle.folder / "wheels").glob(f"{name.replace('-', '?')}-{version}-*{tag}.whl"))
            if tag == "any" or wheels:
                break
        assert wheels, (name, version)


def read_sbom(path: Path) -> set[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    version = {"1.6": SchemaVersion.V1_6, "1.7": SchemaVersion.V1_7}[found["specVersion"]]
    assert JsonStrictValidator(version).validate_str(text) is None
    return {(one["name"], one["version"]) for one in found["components"]}


def test_every_file_for_every_way_of_running_it_is_there(bundle: Bundle) -> None:
    for side in ("curator", "party"):
        for name in (f"units/subn-{side}.service", f"units/subn-{side}.container", f"kubernetes/{side}/{side}.yaml"):
            assert (bundle.folder / name).is_file(), name
    for name in ("docker-compose.yml", "docs/operating.md", "docs/offline.md", "LICENSE", "requirements.lock"):
        assert (bundle.folder / name).is_file(), name
    missing = [line for line in bundle.contents if " none: " in line]
    images = {path.name for path in (bundle.folder / "images").iterdir()}
    assert len(missing) + len(images) == 2, (missing, images)


# Runs


def test_the_programs_install_from_the_wheels_and_finish_a_run(bundle: Bundle, tmp_path: Path) -> None:
    programs, out = tmp_path / "programs", tmp_path / "demo"
    assert bundle.shell(PROGRAMS, PROGRAMS=str(programs)).stdout == f"subn {bundle.version}\n"
    done = bundle.shell('"$PROGRAMS/bin/subn" demo --method guided --out "$OUT"', PROGRAMS=str(programs), OUT=str(out))
    assert "finished" in done.stdout
    manifests = list(out.rglob("manifest.json"))
    assert manifests
    for manifest in manifests:
        bundle.shell('"$PROGRAMS/bin/subn" verify "$MANIFEST"', PROGRAMS=str(programs), MANIFEST=str(manifest))


@pytest.fixture
def loaded(bundle: Bundle, machine: Engine) -> Engine:
    """The machine, with the bundle's image and nothing else."""
    printed = bundle.shell(LOAD, ARCHITECTURE=ARCHITECTURE, **machine.environment).stdout.split()
    assert f"image {ARCHITECTURE} {printed[-1]}" in bundle.contents
    return machine


def test_a_cluster_of_the_loaded_image_finishes_a_run(bundle: Bundle, loaded: Engine, tmp_path: Path) -> None:
    with project(loaded, "subn-bundle", tmp_path / "site", SUBN_SAMPLE_ROWS="1000") as made:
        shutil.copy(bundle.folder / "docker-compose.yml", made.folder)
        made.up("sample-curator", "sample", *HOSPITALS)
        for service in ("sample-curator", *HOSPITALS):
            wait(lambda service=service: made.is_ready(service), f"{service} to be ready")
        wait(lambda: all(name in made.operator("parties", "list") for name in HOSPITALS), "the parties")
        said = made.operator("run", "--schema", "schema.json", "--epsilon", "1", "--anyway", "--json")
        (run_id,) = [json.loads(line)["run"] for line in said.splitlines() if line.startswith('{"run"')]
        assert "finished" in made.operator("wait", run_id)
        made.operator("get", run_id, "--out", "result")
        verified = made.inside("sample-curator", "subn", "verify", "/desk/result/manifest.json")
        assert "table" in verified
