"""The answers of verbs that need several packages; a public coroutine in this package has the name of its verb.

The first parameters of a coroutine are parts of the gateway, by their names. Then come the parameters of the verb and
the notifier of the caller, if the coroutine uses these.
"""
