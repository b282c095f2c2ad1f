"""Lanes: between the journal and a turn. Order within a session, parallel across, each turn committed once."""
