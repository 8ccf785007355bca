"""What a release passes: the checklist of the last commit, and trials as root with a network (fresh Debian systems,
emulated arm64, the page for two Pis).

The systems that trials try install the product by themselves. Begin at checklist.py for the checklist, at __main__.py
for the trials. fresh.py and arm64.py have the steps, userland.py makes a system.
"""
