"""Kinds of attributes: from the text of a value to its category, and from a category back to a text."""
