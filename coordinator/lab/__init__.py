"""A lab of network namespaces on this machine: several nodes with addresses of their own, and nothing left behind."""
