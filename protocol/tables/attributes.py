"""All kinds of attributes that a schema can name.

It does not know how a kind reads and writes values (`protocol.tables.kinds`).
"""

from typing import Annotated

from pydantic import Field

from protocol.tables.kinds.attribute import AttributeBase, Name, Text, first_duplicate, quoted
from protocol.tables.kinds.listed import Boolean, Categorical, Listed, Ordinal
from protocol.tables.kinds.moments import Date, Datetime, Moment
from protocol.tables.kinds.numbers import Integer, Real
from protocol.tables.kinds.numeric import Numeric
from protocol.tables.kinds.ranged import Ranged

__all__ = [
    "KINDS",
    "Attribute",
    "AttributeBase",
    "Boolean",
    "Categorical",
    "Date",
    "Datetime",
    "Integer",
    "Listed",
    "Moment",
    "Name",
    "Numeric",
    "Ordinal",
    "Ranged",
    "Real",
    "Text",
    "first_duplicate",
    "quoted",
]

KINDS = ("categorical", "ordinal", "boolean", "integer", "real", "date", "datetime")

Attribute = Annotated[
    Categorical | Ordinal | Boolean | Integer | Real | Date | Datetime,
    Field(discriminator="kind"),
]
