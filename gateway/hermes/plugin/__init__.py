"""The process of a Hermes plugin: its `ctx`, and the calls of its callbacks."""
