"""The parser of foreign data, in a process that may be killed: pages, long JSON, and regular expressions."""
