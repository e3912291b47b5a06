"""The HTTP API. `routes.py` is all of it on one page; `app.make_api` puts it together."""
