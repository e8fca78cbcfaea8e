"""The `cascade` command: one file per subcommand."""

from cascade.cli.main import main

__all__ = ["main"]
