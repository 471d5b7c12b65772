"""Run the command line as `python -m tilewise`."""

from tilewise.cli.app import main

main()
