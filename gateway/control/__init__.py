"""The control socket: how the command line talks to the running gateway, in JSON-RPC 2.0, a line a message."""
