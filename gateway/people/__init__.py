"""A person's data: export it as an archive, or forget it."""
