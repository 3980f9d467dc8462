"""The data owner's pages."""
