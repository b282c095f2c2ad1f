"""The agents on a person's desk: they ask this gateway before a tool runs, and the person answers in a chat."""
