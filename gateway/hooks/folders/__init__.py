"""The hooks in folders at work: each follows its folder, runs, is called, and is told of events."""
