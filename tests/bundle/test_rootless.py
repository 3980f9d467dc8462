"""A user without root's rights runs a curator and a party from the bundle's image, under a subordinate user."""

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from curator.experiments.sample_data import write_sample
from tests.bundle.conftest import Bundle
from tests.bundle.test_bundle import ARCHITECTURE, LOAD
from tests.containers.machinery import PARTY_RULES, Engine, free_port, wait

USER = "subn-rootless"
CLOSED = "--network host --read-only --cap-drop ALL --security-opt no-new-privileges"


@dataclass(frozen=True)
class Rootless:
    """A user with podman of their own, in a folder that podman's first user owns."""

    folder: Path
    uid: int
    environment: dict[str, str]

    def shell(self, script: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["runuser", "-u", USER, "--", "bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture
def user(machine: Engine) -> Iterator[Rootless]:
    """Somebody without rights, whom the machine did not know before."""
    subprocess.run(["useradd", "--create-home", USER], check=True)
    found = pwd.getpwnam(USER)
    folder = Path(found.pw_dir)
    try:
        (folder / "run").mkdir(mode=0o700)
        given = {"HOME": found.pw_dir, "XDG_RUNTIME_DIR": f"{found.pw_dir}/run", "PATH": os.environ["PATH"]}
        if shared := machine.settings.get("CONTAINERS_CONF"):
            before = Path(shared).read_text(encoding="utf-8").partition("\nlock_type")[0]
            (folder / "containers.conf").write_text(before + '\nlock_type = "file"\n', encoding="utf-8")
            given["CONTAINERS_CONF"] = f"{folder}/containers.conf"
        for path in (folder / "run", folder):
            os.chown(path, found.pw_uid, found.pw_gid)
        made = Rootless(folder, found.pw_uid, given)
        yield made
        made.shell("podman rm --force --all --time 1; podman unshare rm -rf site; podman system migrate", check=False)
    finally:
        # podman leaves a process of the user's, which would keep the user alive.
        subprocess.run(["userdel", "--force", "--remove", USER], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_party_without_root_enrols_and_is_ready(user: Rootless, bundle: Bundle, tmp_path: Path) -> None:
    image = f"dp-subn-{bundle.version}-{ARCHITECTURE}.tar.gz"
    (user.folder / "images").mkdir()
    shutil.copy(bundle.folder / "images" / image, user.folder / "images")
    said = user.shell(f"VERSION={bundle.version} ARCHITECTURE={ARCHITECTURE}\n{LOAD}").stdout.split()
    assert f"image {ARCHITECTURE} {said[-1]}" in bundle.contents
    port, pages = free_port(), free_port()
    serve = f"subn-curator init > /dev/null && exec subn-curator serve --port {port}"
    curator = f"--name curator {CLOSED} --tmpfs /tmp --volume curator-home:/var/lib/dp-subn localhost/dp-subn"
    user.shell(f"podman run --detach {curator} sh -c '{serve}'")
    ready = f"podman exec curator subn-curator ready --port {port}"
    wait(lambda: user.shell(ready, check=False).returncode == 0, "the curator to be ready")
    code = json.loads(user.shell("podman exec curator subn-curator code hospital-1 --json").stdout)["code"]
    write_sample(tmp_path / "sample", 2, 500, seed=1)
    fill(user, tmp_path / "sample", code)
    given = f"--env SUBN_PARTY_CURATOR=https://127.0.0.1:{port} --env SUBN_PARTY_NAME=hospital-1"
    given += f" --env SUBN_PARTY_CODE_FILE=/data/enrolment-code --env SUBN_PARTY_PORT={pages}"
    mounts = "--tmpfs /tmp --volume ./site/home:/var/lib/dp-subn:Z --volume ./site/data:/data:ro,z"
    user.shell(f"podman run --detach --name party {CLOSED} {given} {mounts} localhost/dp-subn subn-party start")
    wait(lambda: user.shell("podman exec party subn-party ready", check=False).returncode == 0, "the party to be ready")
    assert "hospital-1 (you)" in user.shell("podman exec party subn-party peers").stdout
    (keys,) = user.folder.glob("site/home/keys")
    assert keys.stat().st_uid not in (0, 10001, user.uid), "a subordinate user's"
    process = int(user.shell("podman inspect party --format '{{.State.Pid}}'").stdout)
    assert Path(f"/proc/{process}").stat().st_uid == keys.stat().st_uid


def fill(user: Rootless, sample: Path, code: str) -> None:
    """Put table, rules and code where docs/operating.md puts them, and give them to the container's user."""
    for name in ("home", "data"):
        (user.folder / "site" / name).mkdir(parents=True)
    data = user.folder / "site" / "data"
    shutil.copy(sample / "hospital-1.csv", data / "patients.csv")
    shutil.copy(sample / "schema.json", data / "schema.json")
    (data / "enrolment-code").write_text(code, encoding="utf-8")
    (user.folder / "site" / "home" / "party.toml").write_text(PARTY_RULES, encoding="utf-8")
    subprocess.run(["chown", "-R", f"{user.uid}:{user.uid}", user.folder / "site"], check=True)
    user.shell("podman unshare chown -R 10001:10001 site && podman unshare chmod -R go= site")
