"""Access control: the rules that a person wrote, and the people who were authorized by a code."""
