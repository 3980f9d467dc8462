"""Pure helpers that only the two shells use; nothing else in protocol may import them."""
