"""Shedding and admission control: which tuples do not run when there are more than the node or a window can take."""
