"""The agent as an endpoint: `/v1`, in the protocol of OpenAI's clients.

    POST /v1/chat/completions       POST /v1/responses       GET, DELETE /v1/responses/ID
                 │                          │                           │
    server.py    └── key, agent, limit of calls ──────────────────────┬─┘
    payload.py       the body as a prompt and its history             │
    calls.py         begin ── one append ──> journal: message, call   │
                                 │           (and history)            │
                                 ▼                                    ▼
                     lane, turn, replies, hooks             find: the call by its id
                                 │                                    │
                     AnswerWatcher.follow: pieces, then the answer <──┘
                                 │
    chat.py, response.py         └──> JSON, or server-sent events, in the words of the protocol
    error.py         every refusal, in the shape that the clients read

The call is in the journal before the program gets a byte. A caller that repeats its `Idempotency-Key`, even after a
crash, finds the same call, and gets the same answer.
"""
