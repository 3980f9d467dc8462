"""Pure helpers for the two shells only; nothing else in protocol may import them."""
