"""Lanes: the way from the journal to a turn.

Sessions run in parallel, the messages of one session run in order, and each turn commits once.
"""
