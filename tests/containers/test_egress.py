"""The firewall's rules in docs/operating.md: a party reaches its curator, and neither others nor this machine."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.machinery import IMAGE, ROOT, Engine, own_address, wait
from tests.containers.test_cluster import PROBE, a_listener
from tests.support.documents import blocks, document, section

(RULES,) = blocks(section(document("docs/operating.md"), "To the curator and nowhere else"), "shell")
NETWORKS = ("subn-test-egress_outside", "subn-test-egress_world")
PORT = 8460
SERVE = """
import socket, time
held = [socket.create_server(("", port)) for port in (8460, 8461)]
print("serving", flush=True)
time.sleep(600)
"""
# Whether the network's name server answers a question: its address stands in the container's resolv.conf.
ASK = """
import json, re, socket
server = re.search(r"nameserver (\\S+)", open("/etc/resolv.conf").read())[1]
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.settimeout(3)
line.connect((server, 53))
try:
    line.send(bytes.fromhex("000101000001000000000000") + b"\\x01a\\x00\\x00\\x01\\x00\\x01")
    print(json.dumps(bool(line.recv(512))))
except OSError:
    print(json.dumps(False))
"""


@pytest.fixture
def world(engine: Engine) -> Iterator[str]:
    """The address of a container that listens at two ports, on another network than the party's."""
    remove(engine)
    for network in NETWORKS:
        engine("network", "create", network)
    engine("run", "--detach", "--name", "subn-test-egress", "--network", NETWORKS[1], IMAGE, "python", "-c", SERVE)
    wait(lambda: "serving" in engine("logs", "subn-test-egress"), "the listener")
    (found,) = json.loads(engine("inspect", "subn-test-egress"))
    try:
        yield str(found["NetworkSettings"]["Networks"][NETWORKS[1]]["IPAddress"])
    finally:
        remove(engine)


def remove(engine: Engine) -> None:
    engine("rm", "--force", "--time", "0", "subn-test-egress", check=False)
    for network in NETWORKS:
        engine("network", "rm", "--force", network, check=False)
    subprocess.run([nft(), "delete", "table", "inet", "subn_party"], check=False, capture_output=True)


def nft() -> str:
    found = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    assert found is not None, "nft is missing: tests/containers/prepare installs it"
    return found


def test_a_party_reaches_its_curator_and_nobody_else(engine: Engine, world: str, tmp_path: Path) -> None:
    with a_listener() as port:
        places = ((world, PORT), (world, PORT + 1), (own_address(), port))
        assert [reached(engine, place) for place in places] == [True, True, True]
        assert asks_a_name_server(engine)
        apply_rules(engine, world, tmp_path)
        assert [reached(engine, place) for place in places] == [True, False, False]
        assert not asks_a_name_server(engine)


def reached(engine: Engine, place: tuple[str, int]) -> bool:
    found = engine("run", "--rm", "--network", NETWORKS[0], IMAGE, "python", "-c", PROBE.format(places=[place]))
    return bool(json.loads(found)[place[0]] == "reached")


def asks_a_name_server(engine: Engine) -> bool:
    return bool(json.loads(engine("run", "--rm", "--network", NETWORKS[0], IMAGE, "python", "-c", ASK)))


def apply_rules(engine: Engine, curator: str, folder: Path) -> None:
    """Run the document's commands, in podman's form where it is podman, in a folder of the project's name."""
    here = folder / NETWORKS[0].removesuffix("_outside")
    here.mkdir()
    shutil.copytree(ROOT / "party" / "deployment", here / "party" / "deployment")
    script = RULES
    if engine.name == "podman":
        (other,) = re.findall(r"# podman: (\{\{.*\}\})", RULES)
        script = re.sub(r"'\{\{.*?\}\}'", f"'{other}'", RULES).replace("docker network", "podman network")
    given = {**engine.environment, "ADDRESS": curator, "PATH": f"{engine.environment['PATH']}:/usr/sbin"}
    subprocess.run(["bash", "-euc", script], cwd=here, env=given, check=True)
