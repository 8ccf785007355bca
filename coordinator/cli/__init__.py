"""The command line: `app` runs it, `commands` has one file per command, the rest is shared by several commands.

A new command is a file in commands/ and its name in `COMMANDS` of app.py. Begin at app.py, then commands/plan.py.
"""
