"""The ledger, the audit log and the budget."""
