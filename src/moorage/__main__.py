"""`python -m moorage` is the command line."""

from moorage.cli.main import main

main()
