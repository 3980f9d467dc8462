"""Readers, one per kind of source: the header and the rows as text. A reader is imported when a source needs it."""
