"""Another version in the place of this one, or this one again: `hermes-gateway upgrade`, the command line aside.

`program` says what is installed, `room` whether the disks have room for it, `environment` makes the environment beside
the old one and exchanges the two, `plan` is what a home knows of an upgrade that is under way, `program_users` who
else runs the program, and `undo` is the way back. `start` is what a start makes of a plan that it finds.
"""
