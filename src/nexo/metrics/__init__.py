"""What a running server counts and measures.

The parts count in plain numbers of their own (`measures.py`) and report it when the metrics are read
(`Source`); names and meanings are in one table (`families.py`). Nothing of it costs a message more than an
addition; `bench/metrics.py` measures how much.
"""
