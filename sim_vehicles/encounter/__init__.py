"""An ego and a crossing vehicle: how the ego brakes, whether the two touch, and the verdict."""
