"""A finding about an agent's identity."""

from pathlib import Path

from node_agent.tls.identity import SOON_DAYS, lax, load
from node_agent.tls.names import KEY, TlsError, node_name, told
from node_agent.tools.doctor.finding import Finding, note, ok, wrong

SUBJECT = "identity"
AGAIN = "`coordinator certs CLUSTER.yaml --renew`, the folders to the nodes, and the agents restarted"
RENEW = "`coordinator certs CLUSTER.yaml` says how to renew it; then the folders to the nodes, and the agents restarted"


def identity(folder: Path) -> Finding:
    """The folder as an agent would read it, whichever node it is of."""
    try:
        found = load(folder)
        node = node_name(found.name)
        if node:
            load(folder, node)  # may it answer as well as ask?
    except TlsError as error:
        return wrong(SUBJECT, error.problem.without_mend, error.mistake.mend)
    if not node:
        mend = "give the folder of this node, certs/NAME"
        return wrong(SUBJECT, f"{folder} is of {told(found.name)}, not of a node", mend)
    if found.days_left < SOON_DAYS:
        return note(SUBJECT, f"{found.told}, {found.days_left} days from now", AGAIN)
    if found.loose:
        return note(SUBJECT, found.loose, f"chmod 600 {folder / KEY}, unless that is meant")
    if why := lax(folder):
        what = f"{folder}: agents take it, strict verifiers, such as programs that read metrics, refuse it ({why})"
        return note(SUBJECT, what, RENEW)
    return ok(SUBJECT, found.told)
