"""`make sbom` names every package that the lock file pins, in its version and with its hashes, and nothing else."""

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pinned() -> dict[str, tuple[str, set[str]]]:
    """By package: its version and the hashes of its files."""
    found: dict[str, tuple[str, set[str]]] = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text()):
        match = re.match(r"([a-z0-9._-]+)==(\S+)", entry)
        if match:
            found[match[1]] = match[2], set(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
    return found


def test_the_sbom_is_the_lock_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "sbom.json"
    done = subprocess.run(
        ["make", "--silent", "--assume-old=setup", "sbom", f"SBOM={file}"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    sbom = json.loads(file.read_text())
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["name"]) == ("CycloneDX", "dp-subn")
    listed = {
        one["name"]: (
            one["version"],
            {h["content"] for reference in one["externalReferences"] for h in reference.get("hashes", [])},
        )
        for one in sbom["components"]
    }
    assert listed == pinned()
    assert len(listed) > 10
