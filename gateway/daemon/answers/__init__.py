"""The answers of verbs that need several rooms; a public coroutine here has the name of its verb.

Its first parameters are parts of the gateway, by their names. After them come, if it uses them, the parameters of the
verb and the notifier of the caller.
"""
