"""The replacement of this version by another, or the way back: `hermes-gateway upgrade` without the command line.

`program` knows what is installed, `room` checks the disks, `environment` makes the new environment beside the old one
and exchanges the two, `plan` is the home's record of an upgrade in progress, `program_users` finds other users of the
program, and `undo` is the way back. `start` continues from a plan that a start finds.
"""
