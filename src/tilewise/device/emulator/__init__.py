"""
Run PTX on the CPU, checked: the emulated CUDA device.

    text --parser--> syntax.Module --flow--> blocks --codegen--> Python --machine--> run

`rows_*` hold the opcodes, one row each; `memory` and `shadow` the state spaces with
their checks; `device` puts it all behind `device/seam.py`.
"""
