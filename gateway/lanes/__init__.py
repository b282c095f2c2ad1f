"""Lanes: the way from the journal to a turn.

Sessions run in parallel, messages of one in order, each turn commits once.
"""
