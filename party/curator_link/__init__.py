"""The connection to the curator: TLS, introduction, client."""
