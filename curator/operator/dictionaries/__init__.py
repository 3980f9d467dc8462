"""Data dictionaries in their usual forms, read as descriptions of columns."""
