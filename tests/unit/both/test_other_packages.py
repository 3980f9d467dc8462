"""Packages of other programs called `crypto` or `protocol`, as there are: a sentence says what to do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAINS = {"subn": "curator.subn", "subn-party": "party.commands.main"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages as they lie in an environment that other programs share."""
    folder = tmp_path_factory.mktemp("site-packages")
    for name in ("crypto", "protocol", "party", "curator"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def asked(folder: Path, module: str) -> "subprocess.CompletedProcess[str]":
    program = f"import sys; sys.path.insert(0, {str(folder)!r}); from {module} import main; main(['--help'])"
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


def test_its_own_packages_are_known(installed: Path) -> None:
    assert asked(installed, "curator.commands.main").returncode == 0


@pytest.mark.parametrize("module", MAINS.values(), ids=MAINS)
@pytest.mark.parametrize("name", ["crypto", "protocol"])
@pytest.mark.parametrize("how", ["overwritten", "uninstalled"])
def test_a_package_that_was_replaced_is_named(installed: Path, module: str, name: str, how: str) -> None:
    file = installed / name / "__init__.py"
    own = file.read_bytes()
    try:
        file.unlink()
        if how == "overwritten":
            file.write_text('"""Somebody else\'s."""\nraise RuntimeError\n')
        done = asked(installed, module)
    finally:
        file.write_bytes(own)
    assert done.returncode == 1
    assert f"{file} is absent or belongs to another program" in done.stderr
    assert "pipx install" in done.stderr
    assert "Traceback" not in done.stderr
