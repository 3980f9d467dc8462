"""Templates of pages and reports: values are escaped, unless `curator.rendering.formats` made them.

It does not know what is shown.
"""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from curator.rendering.formats import FILTERS

_TEMPLATES = Environment(
    loader=PackageLoader("curator.rendering", "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters |= FILTERS
_TEMPLATES.globals["software"] = version("dp-subn")


def render(template: str, **values: Any) -> str:
    return _TEMPLATES.get_template(template).render(now=datetime.now(UTC), **values)
