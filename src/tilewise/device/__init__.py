"""What the hardware is and how to use it, parsed from texts where it can be."""
