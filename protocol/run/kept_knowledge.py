"""Knowledge as bytes and back, without loss: a curator that starts again, or anew, asks what it asked before.

It does not know where the bytes are kept.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from protocol.exact import canonical_json
from protocol.network.network import Family, Network
from protocol.outside_json import read_json
from protocol.stages.knowledge import Knowledge, LocalModel, Released, Station, Statistic
from protocol.stages.reference_rows import Guide
from protocol.tables.haar import HaarNoise, HaarTree
from protocol.tables.marginal import Table

FORMAT = 3  # rises when a class below gets other fields
_READABLE = (1, 2, FORMAT)  # tables of format 1 have no field for wavelet noise; knowledge of 1 and 2 has no dependence
_LARGEST = 1 << 30  # bytes; the curator's own store holds them
_KEPT = (Knowledge, Family, Guide, HaarNoise, HaarTree, LocalModel, Network, Released, Station, Statistic, Table)
_CLASSES = {kind.__name__: kind for kind in _KEPT}


def knowledge_to_bytes(known: Knowledge) -> bytes:
    return canonical_json({"format": FORMAT, "knowledge": _plain(known)})


def knowledge_from_bytes(data: bytes) -> Knowledge:
    """Return the knowledge. Raise ValueError if another version of the program wrote it in another format."""
    found = read_json(data, largest=_LARGEST)
    if not isinstance(found, dict) or found.get("format") not in _READABLE:
        raise ValueError("the knowledge of this run is in the format of another version")
    known = _value(found["knowledge"])
    assert isinstance(known, Knowledge)
    return known


def _plain(value: Any) -> Any:
    """Return the value in JSON's terms: an object names its kind, and a list is a tuple."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"is": "float", "hex": value.hex()}
    if isinstance(value, Fraction):
        return {"is": "fraction", "text": str(value)}
    if isinstance(value, bytes):
        return {"is": "bytes", "base64": b64encode(value).decode()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            items = [_plain(one) for one in value.ravel().tolist()]
            return {"is": "objects", "shape": list(value.shape), "items": items}
        data = b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"is": "array", "type": value.dtype.str, "shape": list(value.shape), "base64": data}
    if isinstance(value, Mapping):
        return {"is": "map", "items": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    assert is_dataclass(value), f"no form for {type(value).__name__}"
    assert _CLASSES[type(value).__name__] is type(value)
    return {"is": type(value).__name__, **{field.name: _plain(getattr(value, field.name)) for field in fields(value)}}


def _array(found: Mapping[str, Any]) -> Any:
    return np.frombuffer(b64decode(found["base64"]), dtype=found["type"]).reshape(found["shape"]).copy()


def _objects(found: Mapping[str, Any]) -> Any:
    array = np.empty(found["shape"], dtype=object)
    array.ravel()[:] = [_value(one) for one in found["items"]]
    return array


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "float": lambda found: float.fromhex(found["hex"]),
    "fraction": lambda found: Fraction(found["text"]),
    "bytes": lambda found: b64decode(found["base64"]),
    "array": _array,
    "objects": _objects,
    "map": lambda found: {_value(key): _value(one) for key, one in found["items"]},
}


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return tuple(_value(one) for one in found)
    if not isinstance(found, dict):
        return found
    kind = found["is"]
    if kind in _KINDS:
        return _KINDS[kind](found)
    return _CLASSES[kind](**{name: _value(one) for name, one in found.items() if name != "is"})
