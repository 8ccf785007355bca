"""Plans, deploys, collects and reports: everything that looks at the whole cluster."""
