"""Exports of OpenIM's MongoDB: `documents.py` reads them, `staging.py` makes t_* tables of them, which `store.legacy`
imports."""
