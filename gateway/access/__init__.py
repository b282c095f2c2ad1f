"""Who may speak to the gateway: the rules that a person wrote, and the people who were let in by a code."""
