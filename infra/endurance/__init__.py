"""Minutes of overload on two real agents: what stays bounded, what is given, how soon all is well again."""
