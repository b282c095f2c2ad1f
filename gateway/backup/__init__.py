"""Copies of all that is the user's in a home: one archive, made while the gateway serves, verified, and put back.

`contents` says what belongs in, `archive` writes one, `archive_reader` reads what somebody says is one, `restore`
puts one in place, and `kept` looks after those that lie in the home's own folder. `python -m gateway.backup` is the
process in which the gateway makes its own.
"""
