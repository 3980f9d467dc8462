"""The plan, its consequences and its promises: public numbers only."""
