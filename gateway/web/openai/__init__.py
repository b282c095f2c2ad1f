"""The agent as an endpoint: `/v1` as the clients of OpenAI speak it.

`server.py` lets programs in by their keys and finds who answers; `chat.py` and `response.py` have the two ways of
asking, each with its words for the same answer; `payload.py` reads what both are given; `calls.py` journals a call and
finds its answer; `error.py` has the shape of a refusal.
"""
