"""python -m node_agent, and the entry point of `node-agent`."""

import sys

from node_agent.tools import run_options


def main() -> None:
    """Run the command line and exit with its code."""
    plain = run_options.plainly(sys.argv[1:])
    if plain is not None:
        from node_agent.tools import agent_start

        sys.exit(agent_start.run(plain))
    from node_agent.tools import cli

    sys.exit(cli.main())


if __name__ == "__main__":
    main()
