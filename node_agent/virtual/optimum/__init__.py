"""How few results any schedule could miss, and how far a policy is from that."""
