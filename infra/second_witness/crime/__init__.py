"""What runs in .venv-witness, with commonroad-crime: nothing here imports the product.

Measures that are asked, all of recorded motion and its geometry: PET (Allen et al. 1978), DCE and TTCE (Eggert 2014:
least distance of the boxes, and when), WTTC (Wachenfeld et al. 2016), TTC* (first touch of an intended path with the
others' motion). Its TTC, DST, THW, A_req and BTN are for an ego and a leader in one lane: they measure along the ego's
lanelet and take the other's whole speed as along it, so a vehicle that crosses looks like a leader that drives away.
"""
