"""The right to real-time priorities for the user that an agent runs as: what to do, and doing the part that is safe."""

import contextlib
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from node_agent.host.scheduling import SUPERVISOR_PRIORITY
from node_agent.problems import ProblemError

LIMITS = Path("/etc/security/limits.d")
_OURS = "# Written by `node-agent grant-rt --apply`."


class GrantError(ProblemError):
    """It cannot be granted. `exit_code`: 2 where an option is at fault."""

    exit_code = 1


class GrantOptionError(GrantError):
    """An option cannot be used."""

    exit_code = 2


@dataclass(frozen=True)
class RealTimePermission:
    """user: who runs the agent. python: its interpreter, links resolved. again: the command that grants, as root."""

    user: str
    python: Path
    limits: Path = LIMITS
    again: str = "sudo node-agent grant-rt --apply"

    @property
    def path(self) -> Path:
        """The file below limits.d."""
        return self.limits / f"shimekiri-{self.user}.conf"

    def content(self) -> str:
        """The file's lines."""
        return (
            f"{_OURS} Undo: remove this file.\n"
            f"# {self.user} may use real-time priorities up to {SUPERVISOR_PRIORITY}, from the next login on.\n"
            f"{self.user} - rtprio {SUPERVISOR_PRIORITY}\n"
        )


def check_user(user: str) -> None:
    """Raises GrantError for what is no user's name: it becomes part of a path and of a line."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", user):
        raise GrantOptionError("other_name", f"--user {user!r}: give the name of a user, such as pi", subject="--user")


def instructions(grant: RealTimePermission, allowed: bool) -> str:
    """What to do, in three ways. allowed: the user who asks may use real time already."""
    python = shlex.quote(str(grant.python))
    now = "SCHED_FIFO is allowed here and now; what follows is for other ways to start the agent." if allowed else (
        f"Real time (SCHED_FIFO up to priority {SUPERVISOR_PRIORITY}) for {grant.user}: one of these suffices."
    )  # fmt: skip
    return f"""{now}

1. Agents started from a shell or over ssh: a line in {grant.path}
     {grant.user} - rtprio {SUPERVISOR_PRIORITY}
   do it:  {grant.again}
   then:   log out and in again (PAM reads it at a login; `ulimit -r` then says {SUPERVISOR_PRIORITY})
   undo:   sudo rm {shlex.quote(str(grant.path))}

2. Agents started by systemd, which does not read limits.d: two lines in the unit
     [Service]
     LimitRTPRIO={SUPERVISOR_PRIORITY}
   do it:  sudo systemctl edit UNIT, write them there, sudo systemctl restart UNIT
   undo:   sudo systemctl revert UNIT
   A unit of a user's own manager (systemctl --user) cannot exceed that manager: edit user@.service instead.

3. Neither is possible: a capability on the interpreter
   do it:  sudo setcap cap_sys_nice=ep {python}
   undo:   sudo setcap -r {python}
   Risk: everything that any user runs with this interpreter may then take a core for itself and change the priority
   of any process; the interpreter ignores LD_LIBRARY_PATH; an upgrade of Python takes the capability away.

In a container: start it with --cap-add SYS_NICE or --ulimit rtprio={SUPERVISOR_PRIORITY}.
A program of the FIFO class that never waits keeps a core for itself; kernel.sched_rt_runtime_us (95 % unless changed)
is what leaves the others something. `node-agent doctor` says whether the class is granted."""


def apply(grant: RealTimePermission) -> str:
    """Write the limits.d file; returns what was done. Nothing is written where it stands there already.

    Raises GrantError where that is not allowed, or where a file of that name is somebody else's.
    """
    path, content = grant.path, grant.content()
    after = f"Log out and in again as {grant.user}, then: node-agent doctor\nUndo: sudo rm {shlex.quote(str(path))}"
    try:
        there = path.read_text(errors="replace") if os.path.lexists(path) else ""
        if there == content:
            return f"{path} is as it should be: nothing written.\n{after}"
        if there and not there.startswith(_OURS):
            line = f"{grant.user} - rtprio {SUPERVISOR_PRIORITY}"
            text = f"{path} was not written by this command: left as it is"
            raise GrantError("other_file", text, f"add the line `{line}`", subject=str(path))
        _write(path, content)
    except OSError as error:
        if isinstance(error, PermissionError):
            mend = f"as root: {grant.again}"
            raise GrantError("not_allowed", "not allowed to write there", mend, file=grant.limits) from None
        text, mend = f"cannot be written ({error.strerror})", "is PAM's limits.d elsewhere?"
        raise GrantError("unwritable", text, mend, file=path) from None
    return f"{path}: written\n     {content.splitlines()[-1]}\n{after}"


def _write(path: Path, content: str) -> None:
    """All of it or nothing, readable by all as its neighbours are."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), 0o644)  # at any umask
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
