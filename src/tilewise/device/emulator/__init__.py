"""
Run PTX on the CPU, checked: the emulated CUDA device.

    text --parser--> syntax.Module --inline, flow--> blocks --codegen--> Python
    arguments --launch--> parameter block --machine--> memory, reports

`rows_*` hold the opcodes, one row each; `memory` and `shadow` the state spaces with
their checks; `barriers`, `order`, `copies` and `warps` what threads do together;
`device` puts it all behind `device/seam.py`. A new opcode is a row.

What it can't show: speed of any kind, bank conflicts and coalescing, weak memory order
(all threads see every write at once), what ptxas makes of the PTX, registers and
occupancy, and how a driver launches. Not looked for: an index that stays inside its
buffer or jumps over a red zone, races in global memory between threads of one block,
and stale values that a missing store leaves from an earlier round.
"""
