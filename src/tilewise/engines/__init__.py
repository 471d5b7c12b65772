"""The engines: each turns a problem into variants and code, knowing no other."""
