"""python -m node_agent, and the entry point of `node-agent`."""

import sys

from node_agent.tools import cli


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
