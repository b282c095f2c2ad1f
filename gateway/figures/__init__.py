"""The figures of this gateway over time: counted in memory, and written once in a half hour."""
