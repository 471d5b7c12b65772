"""The public face: kernels, reports and the emulated device for users."""
