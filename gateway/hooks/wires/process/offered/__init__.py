"""What a handler finds under the names `gateway.hooks` and `gateway.session_context`."""
