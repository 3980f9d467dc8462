"""Who may call: operators, parties and their sessions."""
