"""Print what this image is made of, as CycloneDX 1.6: its Debian packages, its Python, and the Python packages.

Run inside the image: `podman run --rm -i IMAGE python - < .ci/image_sbom.py`. It needs nothing but Python.
"""

import json
import platform
import re
from importlib import metadata
from pathlib import Path
from urllib.parse import quote


def debian_packages() -> list[dict[str, str]]:
    found = []
    for entry in Path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n"):
        fields = dict(re.findall(r"^(\S+): (.*)$", entry, re.M))
        if fields.get("Status", "").endswith(" installed"):
            name, version = fields["Package"], fields["Version"]
            purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={fields['Architecture']}"
            found.append(component(name, version, purl))
    return found


def python_packages() -> list[dict[str, str]]:
    found = {re.sub(r"[-_.]+", "-", one.name).lower(): one.version for one in metadata.distributions()}
    return [component(name, version, f"pkg:pypi/{quote(name)}@{quote(version)}") for name, version in found.items()]


def component(name: str, version: str, purl: str) -> dict[str, str]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def main() -> None:
    version = platform.python_version()
    python = component("python", version, f"pkg:generic/python@{version}")
    components = sorted([python, *debian_packages(), *python_packages()], key=lambda one: one["purl"])
    image = {"type": "container", "bom-ref": "image", "name": "dp-subn", "version": metadata.version("dp-subn")}
    document = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    print(json.dumps({**document, "metadata": {"component": image}, "components": components}, indent=2))


main()
