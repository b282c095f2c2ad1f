"""The control socket: how the command line talks to the running gateway, in JSON-RPC 2.0, a line a message."""

LINE_LIMIT = 8 << 20  # bytes of a request
