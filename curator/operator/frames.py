"""A typed table as a data frame of pandas, which is imported only here, and only if somebody asks.

It does not know where the table comes from.
"""

import io
from typing import Any

from protocol.errors import OperatorError


def frame_of(parquet: bytes) -> Any:
    """Return a pandas.DataFrame. A number that the schema gives so many decimals becomes a float."""
    try:
        import pandas
    except ImportError:
        raise OperatorError("a data frame needs pandas, which is not installed: pip install pandas") from None
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(parquet))
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_decimal(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pyarrow.float64()))
    types = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
    return table.to_pandas(types_mapper=types.get, date_as_object=False)
