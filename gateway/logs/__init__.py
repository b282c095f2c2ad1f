"""The gateway's log.

`text` makes foreign text harmless, `redaction` removes secrets, `lines` formats a line with its session, turn and hook,
and `pipeline` takes lines from the caller without delay and passes them to the `sinks`.
"""
