"""A Hermes plugin in its own process: what it finds as `ctx`, and how its callbacks are called."""
