"""How far a published table is from the party's own rows; it never leaves this machine."""
