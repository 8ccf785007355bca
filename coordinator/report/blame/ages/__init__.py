"""Who made the data behind results old: docs/explanation/age.md."""
