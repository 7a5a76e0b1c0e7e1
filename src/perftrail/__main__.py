"""`python -m perftrail` is `perftrail`."""

from perftrail.cli.main import main

main()
