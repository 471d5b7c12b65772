"""Keys, code versions and builds: the only meeting of engines and store."""
