"""Engines that hold a party's rows and count them there, so that tables come back and never a row (`engines.md`)."""

from importlib.util import find_spec

from protocol.errors import DataError

if find_spec("ibis") is None:
    raise DataError("counting in an engine needs the Python package ibis-framework: install dp-subn[engines]")
