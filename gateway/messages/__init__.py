"""Messages: their parts and pieces, their authors and roles, the steps of a turn, the conversation."""
