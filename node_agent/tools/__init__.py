"""The commands of `node-agent` that are not the agent itself."""
