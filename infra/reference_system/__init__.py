"""The Autoware Reference System as a query: who meets its deadlines, and which bounds are told before."""
