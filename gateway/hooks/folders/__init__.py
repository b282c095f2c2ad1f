"""The hooks in folders at work: their versions, their processes, their calls and their answers."""
