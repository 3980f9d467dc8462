"""A party behind its hospital's proxies, as real processes: one asks for a password, and one reads TLS."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curator.home.x509 import new_ca, utc_now
from tests.end_to_end.cluster import Cluster, Site, cluster, command
from tests.support.forward_proxy import ForwardProxy, forward_proxy, showing

PASSWORD = "north:secret"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("proxies") / "c") as found:
        yield found


@pytest.fixture(scope="module")
def proxy() -> Iterator[ForwardProxy]:
    with forward_proxy(PASSWORD) as found:
        yield found


def network(site: Site, *lines: str) -> None:
    """Write the section [network] anew."""
    file = site.home / "party.toml"
    kept = file.read_text().partition("\n[network]\n")
    rest = kept[2].partition("\n[")
    file.write_text(kept[0] + ("\n[" + rest[2] if rest[1] else "") + "\n[network]\n" + "\n".join(lines) + "\n")


def connection(site: Site, code: int, **environment: str) -> dict[str, str]:
    done = command("subn-party", "doctor", "--home", site.home, "--json", env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, str] = next(one for one in json.loads(done.stdout)["findings"] if one["what"] == "connection")
    return found


def test_enrolment_doctor_and_service_take_the_proxy_of_the_settings(clinic: Cluster, proxy: ForwardProxy) -> None:
    clinic.add("north", "south")
    clinic.acquaint("north", "south")
    north = clinic.sites["north"]
    network(north, f'proxy = "{proxy.url}"')
    clinic.enrol("north", "south")
    target = clinic.url.removeprefix("https://")
    assert set(proxy.asked) == {target}
    before = len(proxy.asked)
    found = connection(north, 0)
    assert (found["verdict"], f"through the proxy 127.0.0.1:{proxy.port}" in found["found"]) == ("ok", True)
    assert len(proxy.asked) > before
    # docker-compose.yml sets the variable in any case; this took the settings' proxy away.
    assert "through the proxy" in connection(north, 0, SUBN_PARTY_PROXY="environment")["found"]
    clinic.serve("north", "south")
    clinic.finished("north", "south")
    clinic.sites["south"].running.stop()
    north.running.stop()
    assert "secret" not in north.running.log.read_text()


def test_the_environments_proxy_is_taken_unless_it_is_told_to_stay_away(clinic: Cluster, proxy: ForwardProxy) -> None:
    clinic.add("east")
    east = clinic.sites["east"]
    code = clinic.code("east")
    asked = len(proxy.asked)
    words = ("enrol", "--home", east.home, "--curator", clinic.url, "--code", code, "--name", "east")
    assert command("subn-party", *words, env={"HTTPS_PROXY": proxy.url}).returncode == 0
    assert len(proxy.asked) > asked
    asked = len(proxy.asked)
    assert connection(east, 0, HTTPS_PROXY=proxy.url, NO_PROXY="127.0.0.1")["verdict"] == "ok"
    network(east, 'proxy = "none"')
    assert connection(east, 0, HTTPS_PROXY=proxy.url)["verdict"] == "ok"
    assert len(proxy.asked) == asked


def test_a_proxy_that_does_not_lead_there_is_told_with_its_reason(clinic: Cluster, proxy: ForwardProxy) -> None:
    clinic.add("west")
    clinic.enrol("west")
    west = clinic.sites["west"]
    network(west, f'proxy = "{proxy.url_without_password}"')
    assert "asks for a name and a password (status 407)" in connection(west, 1)["found"]
    complaint = west.shell("peers").stderr
    assert "asks for a name and a password (status 407)" in complaint


@pytest.mark.parametrize("where", ["settings", "environment", "variable"])
def test_a_socks_proxy_is_a_sentence(clinic: Cluster, where: str) -> None:
    if "socks" not in clinic.sites:
        clinic.add("socks")
        clinic.enrol("socks")
    site, socks = clinic.sites["socks"], "socks5://name:secret@127.0.0.1:1"
    network(site, f'proxy = "{socks}"' if where == "settings" else "")
    environment = {"environment": {"HTTPS_PROXY": socks}, "variable": {"SUBN_PARTY_PROXY": socks}}.get(where, {})
    done = command("subn-party", "peers", "--home", site.home, env=environment)
    assert done.returncode == 2, done.stderr
    assert "SOCKS proxies are not supported: ask your network's people" in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_the_operators_command_says_the_same(clinic: Cluster, proxy: ForwardProxy) -> None:
    done = command("subn", "parties", "list", env=clinic.operator | {"ALL_PROXY": "socks5://127.0.0.1:1"})
    assert done.returncode == 2
    assert "SOCKS proxies are not supported" in done.stderr
    done = command("subn", "parties", "list", env=clinic.operator | {"HTTPS_PROXY": proxy.url_without_password})
    assert "asks for a name and a password (status 407)" in done.stderr
    assert command("subn", "parties", "list", env=clinic.operator | {"HTTPS_PROXY": proxy.url}).returncode == 0


def test_a_proxy_of_the_house_that_reads_tls_is_told_apart_from_an_attack(clinic: Cluster, tmp_path: Path) -> None:
    """The pin holds against both. Only the first shows a certificate that this machine trusts."""
    clinic.add("inspected")
    site, ca = clinic.sites["inspected"], new_ca(utc_now())
    with forward_proxy(inspecting=showing(ca, "127.0.0.1", tmp_path)) as between:
        network(site, f'proxy = "{between.url}"')
        code = clinic.code("inspected")
        words = ("enrol", "--curator", clinic.url, "--code", code, "--name", "inspected")
        attacked = site.shell(*words)
        assert attacked.returncode == 3
        assert "somebody is intercepting the connection" in attacked.stderr
        (site.home / "house.pem").write_text(ca.certificate_pem)
        network(site, f'proxy = "{between.url}"', 'ca_bundle = "house.pem"')
        stopped = site.shell(*words)
        assert stopped.returncode == 3
        assert "a proxy that reads TLS stands in between" in stopped.stderr
        assert "without TLS inspection" in stopped.stderr
        assert "somebody is intercepting" not in stopped.stderr
        network(site, 'proxy = "none"')
        assert site.shell(*words).returncode == 0  # the code was not spent
        network(site, f'proxy = "{between.url}"', 'ca_bundle = "house.pem"')
        assert "a proxy that reads TLS stands in between" in connection(site, 1)["found"]
