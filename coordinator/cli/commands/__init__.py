"""One file per command: its options, help, output and exit code, and `register(app)`. The work is done elsewhere.

A command imports from another one only an option or a default that both have. Begin at plan.py, the command that most
others come after. docs/reference/commands/coordinator.md is made from the help.
"""
