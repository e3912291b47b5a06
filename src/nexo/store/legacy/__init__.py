"""A chat database with t_* tables, where cursors are message ids, made into a Nexo store.

`run.py` is the order of things; `messages.py` and `members.py` hold the rules of the conversion.
"""
