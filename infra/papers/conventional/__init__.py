"""[P] 7 asks for it: conventional methods for distributed real-time systems, beside the paper's and ours."""
