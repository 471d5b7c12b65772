"""The GLSL engine: compute shaders for any OpenGL 4.3 device, through moderngl."""
