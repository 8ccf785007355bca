"""The scheduling process of one core: data sockets, engine and operators on one thread. It never imports grpc.

Begin at loop.py: drain sockets, hand arrivals to the engine, end the instance, choose the next one, publish facts, send
tuples. See docs/explanation/runtime.md.
"""
