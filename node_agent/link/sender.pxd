# Compiled as it stands: a class with a base of Python cannot be typed.
