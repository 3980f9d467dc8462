"""Schema, encodings, coded rows and the tables that are counted from them."""
