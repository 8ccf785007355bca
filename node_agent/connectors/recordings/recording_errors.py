"""What a recording that cannot be read is to its connector: no further attempt helps."""

from node_agent.client.address_book import InputError
from node_agent.connectors.connector_ports import NotConnectableError


def not_usable(error: InputError) -> NotConnectableError:
    """With the same code, text and place."""
    told, problem = error.mistake, error.problem
    return NotConnectableError(
        error.code, told.text, told.mend, subject=told.subject, file=problem.file, line=problem.line
    )
