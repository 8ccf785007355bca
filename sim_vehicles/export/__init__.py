"""A replay as a file for other programs: MCAP, which Foxglove opens.

Begin at mcap_file.py. mcap_scene.py draws, mcap_schemas.py describes the messages.
"""
