"""The answers of verbs that need several rooms; a public coroutine here bears the name of its verb.

Its leading parameters are parts of the gateway, by their names; behind them come, where it uses them, the verb's
parameters and what notifies the caller.
"""
