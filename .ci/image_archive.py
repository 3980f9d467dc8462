"""Write an image archive of podman or docker anew, without what chance put into it, and print the image's id.

A build notes its container's name and host name in the image. Nothing uses them, and no two builds agree on them.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def main(archive: Path, written: Path, names: list[str]) -> None:
    with (
        tarfile.open(archive) as source,
        written.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        print(rewritten(source, target, names))


def rewritten(source: tarfile.TarFile, target: tarfile.TarFile, names: list[str]) -> str:
    (manifest,) = json.loads(contents(source, "manifest.json"))
    config = json.loads(contents(source, manifest["Config"]))
    config.pop("container", None)
    for part in ("config", "container_config"):
        config.get(part, {}).pop("Hostname", None)
    text = json.dumps(config, sort_keys=True).encode()
    image = hashlib.sha256(text).hexdigest()
    layers = [f"layer-{number}.tar" for number, _ in enumerate(manifest["Layers"])]
    new = [{"Config": f"{image}.json", "RepoTags": names, "Layers": layers}]
    add(target, f"{image}.json", len(text), io.BytesIO(text))
    for name, layer in zip(layers, manifest["Layers"], strict=True):
        found = source.getmember(layer)
        data = source.extractfile(found)
        size = found.size if found.isreg() else source.getmember(found.linkname.removeprefix("../")).size
        assert data is not None
        add(target, name, size, data)
    text = json.dumps(new).encode()
    add(target, "manifest.json", len(text), io.BytesIO(text))
    return image


def contents(source: tarfile.TarFile, name: str) -> bytes:
    file = source.extractfile(name)
    assert file is not None, f"{name} is no file of the archive"
    return file.read()


def add(target: tarfile.TarFile, name: str, size: int, data: io.IOBase) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    target.addfile(entry, data)


main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
