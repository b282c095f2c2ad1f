"""The connections from the gateway to a hook: a worker process, an executable, a URL."""
