"""Changes of the house that a page can only propose: each is one call of a tool, and an owner's yes lets it run."""
