"""`python -m logyard` is the same as the `logyard` command."""

from logyard_api.cli.main import main

if __name__ == "__main__":
    main()
