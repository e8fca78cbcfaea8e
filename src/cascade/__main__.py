"""`python -m cascade`: the command, without its script."""

from cascade.cli import main

if __name__ == "__main__":
    main()
