"""The commands of `sim-vehicles`, one file each with `register(app)`. Heavy imports wait until a command runs.

Begin at app.py, then the command's own file. exit_code.py has the exit codes.
"""
