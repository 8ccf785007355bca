"""What runs in .venv-witness, with commonroad-crime: nothing here imports the product.

Measures that are asked, all of recorded motion and its geometry: PET (Allen et al. 1978), DCE (Eggert 2014: least
distance of the boxes), TTC* (first touch of an intended path with the others' motion). Its TTC, DST, THW, A_req and BTN
are for an ego and a leader in one lane: they measure along the ego's lanelet and take the other's whole speed as along
it, so a vehicle that crosses looks like a leader that drives away. TTZ wants a zebra. WTTC, a bound over all that both
could do, is about a second for every follower, and raises IndexError where the two discs overlap.
"""
