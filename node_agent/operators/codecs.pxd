# Compiled as it stands: its values have any type.
