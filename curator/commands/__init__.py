"""The command `subn-curator`."""
