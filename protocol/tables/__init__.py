"""Schema, encodings, coded rows, and tables that are counted from rows."""
