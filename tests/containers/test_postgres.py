"""docs/operating.md is true for a curator on PostgreSQL: its commands start it, back it up and restore it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.containers.machinery import HERE, Engine, free_port, own_address, wait
from tests.containers.test_engineer import OPERATING, Machines, Site
from tests.support.documents import blocks, section

START, BACKUP, RESTORE = blocks(section(OPERATING, "A curator on PostgreSQL"), "shell")
IMAGE = "dp-subn-tested-postgres"


@pytest.fixture
def site(engine: Engine, tmp_path: Path) -> Iterator[Site]:
    given = ["--build-arg", f"SUBN_BASE={engine.base}", "--network", "host"]
    engine("build", *given, "--tag", IMAGE, HERE / "postgres", timeout=900)
    with ExitStack() as stack:
        yield Machines(engine, tmp_path, stack).site("postgres", SUBN_DATABASE_IMAGE=IMAGE)


def test_a_curator_and_its_database_are_started_backed_up_and_restored_as_written(site: Site) -> None:
    site.shell(START, ADDRESS=own_address(), PORT=str(free_port()))
    code = ("run", "--rm", "--no-deps", "-T", "operator", "parties", "code", "hospital-1")
    assert "valid once" in site.project.compose(*code)
    before = codes(site)
    assert len(before.split()) == 1
    site.shell(BACKUP)
    site.project.remove()
    said = site.shell(RESTORE)
    assert "is as it was at" in said
    assert codes(site) == before
    wait(lambda: site.project.is_ready("curator"), "the restored curator to be ready", patience=60)
    assert "curator.db" not in site.project.inside("curator", "ls", "/var/lib/dp-subn")


def codes(site: Site) -> str:
    """What the database itself says of the codes that were made."""
    return site.project.inside("database", "psql", "--username=subn", "--tuples-only", "-c", "SELECT hash FROM codes")
