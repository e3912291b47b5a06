"""`python -m nexo`: the same as the command `nexo`."""

from nexo.cli import main

main()
