"""Readers, one a kind of source: the header and the rows as text. Each is imported when a source is of its kind."""
