"""Import a chat database with t_* tables, where cursors are message ids, into a Nexo store.

`importer.py` has the order of the steps, `messages.py` and `members.py` the rules of the conversion.
"""
