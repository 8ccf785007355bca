"""What lets a process start sooner: modules that are loaded late."""
