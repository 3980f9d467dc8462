"""Where the data owner's pages are asked for: names, ports, certificates, and settings that would leave them open."""

import ssl
from pathlib import Path

import pytest

from curator.home.x509 import new_ca, new_server_certificate, utc_now
from party.errors import SettingsError
from party.files import write_file
from party.home.layout import Home
from party.home.page_address import Local
from party.home.settings import load, template


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    write_file(home.settings, template())
    return home


def local(home: Home, *lines: str) -> Local:
    write_file(home.settings, template().replace("port = 8470\n", "\n".join(["port = 8470", *lines, ""]), 1))
    return load(home).local


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ((), "http://127.0.0.1:8470"),
        (('host = "0.0.0.0"',), "http://127.0.0.1:8470"),
        (('names = ["localhost"]',), "http://localhost:8470"),
        (('names = ["127.0.0.1:9000"]',), "http://127.0.0.1:9000"),
        (('names = ["[::1]"]',), "http://[::1]:8470"),
        (('names = ["Pages.Example:443"]', 'certificate = "pages.pem"'), "https://Pages.Example:443"),
        (('names = ["pages.example", "127.0.0.1"]', 'certificate = "pages.pem"'), "https://pages.example:8470"),
    ],
)
def test_the_address_in_the_browser_is_the_first_name(home: Home, lines: tuple[str, ...], shown: str) -> None:
    assert local(home, *lines).shown_at(8470) == shown


@pytest.mark.parametrize(
    ("host", "asked"),
    [("0.0.0.0", "http://127.0.0.1:1"), ("::", "http://[::1]:1"), ("10.0.0.9", "http://10.0.0.9:1")],
)
def test_commands_never_ask_an_address_that_only_listens(home: Home, host: str, asked: str) -> None:
    assert local(home, f'host = "{host}"').asked_at(1) == asked


def test_the_environment_of_a_container_names_the_pages(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBN_PARTY_HOST", "0.0.0.0")
    monkeypatch.setenv("SUBN_PARTY_PORT", "8471")
    monkeypatch.setenv("SUBN_PARTY_NAMES", "127.0.0.1:9999, Pages.Example")
    with pytest.raises(SettingsError, match=r"SUBN_PARTY_NAMES: .*unencrypted under the name Pages\.Example: set"):
        load(home)
    found = local(home, 'certificate = "pages.pem"')
    assert (found.host, found.port, found.shown_at(8471)) == ("0.0.0.0", 8471, "https://127.0.0.1:9999")
    assert found.hosts == {"127.0.0.1", "localhost", "[::1]", "pages.example"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('names = ["pages.example"]', "names: browsers elsewhere would read your pages unencrypted"),
        ('names = ["http://x"]', "local.names.0: found 'http://x', expected names such as 127.0.0.1 or"),
        ("names = []", "local.names: is empty; expected at least one entry"),
        ('names = "127.0.0.1"', "local.names: found '127.0.0.1', expected a list in brackets"),
    ],
)
def test_names_that_cannot_work_are_refused(home: Home, line: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        local(home, line)
    assert complaint in str(caught.value)


def test_a_certificate_that_cannot_be_used_is_named(home: Home) -> None:
    found = local(home, 'certificate = "pages.pem"')
    with pytest.raises(SettingsError, match=r"pages\.pem cannot be read: put the file there"):
        found.server_context(home.path)
    made = new_server_certificate(new_ca(utc_now()), ["pages.example"], utc_now())
    (home.path / "pages.pem").write_text(made.certificate_pem)
    with pytest.raises(SettingsError, match="do not hold a certificate and its key in PEM form"):
        found.server_context(home.path)
    (home.path / "pages.key").write_text(made.key_pem)
    context = local(home, 'certificate = "pages.pem"', 'certificate_key = "pages.key"').server_context(home.path)
    assert context is not None
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_without_a_certificate_there_is_no_tls(home: Home) -> None:
    assert local(home).server_context(home.path) is None
