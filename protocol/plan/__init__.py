"""The plan, what follows from it, and what it promises: public numbers only."""
