"""Every message between curator and party, how it is signed, and its versions."""
