"""The command `subn-party`."""
