"""`python -m perftrail` is `perftrail`."""

from perftrail.cli.start import main

if __name__ == "__main__":
    main()
