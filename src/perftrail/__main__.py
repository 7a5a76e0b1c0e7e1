"""`python -m perftrail` is `perftrail`."""

from perftrail.cli.main import main

if __name__ == "__main__":
    main()
