"""The blind crossing and the virtual cluster."""
