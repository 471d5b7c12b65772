"""The command line: `tilewise` and its tables."""
