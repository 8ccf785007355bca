"""What runs on a device: supervisor, runtime, control, and the pure engine in `core`."""
