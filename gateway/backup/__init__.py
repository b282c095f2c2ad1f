"""The copies of a home's own data: one archive, made while the gateway serves, verified, and restored.

`contents` decides what is copied, `archive` writes a copy, `archive_reader` reads one without trust, `restore` puts it
in place, and `backup_folder` manages those in the home's own folder. `python -m gateway.backup` is the process in which
the gateway makes its own.
"""
