"""Every fact has two witnesses, and they are compared: what a record says against its causes, its peer and the plan."""
