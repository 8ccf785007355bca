"""The verdict as Spark columns, for runs that take too long in plain Python. The counts are those of `../ledger`.

The only package of the report that imports Spark. Begin at spark.py (the whole) and spark_ledger.py (its core).
spark_tables.py reads what `../landing` wrote. java.py and spark_session.py start Spark.
"""
