"""The curator's database."""
