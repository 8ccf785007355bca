"""The virtual cluster: the agents' engine, plans and operators in virtual time."""
