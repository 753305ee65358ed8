"""Boolean circuits as jump programs: with registers that grow, forward jumps evaluate any circuit (paper, section 4).

A gate takes three blocks. To set register k to x AND y, with every register 0 at the start::

    if x  go on                else jump behind the gate
    if y  go on                else jump behind the gate
    negate k, and go on

An input of a gate may be negated, which is the condition's own negation. Evaluating circuits is complete for P, so this regime is
believed to have no solver of logarithmic depth, unlike programs over a fixed number of registers (fbam/tasks/solvers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fbam.tasks.frjt import HALT_A, HALT_B, JumpsError, Programs

Wire = tuple[int, bool]
"""A register and whether it is read negated."""


@dataclass(frozen=True)
class Circuit:
    """A circuit of AND gates with negatable inputs; its output is the last gate.

    NAND is an AND that is read negated, here twice by a second gate, of the inputs 1 and 1::

        Circuit(inputs=(True, True), gates=(((0, False), (1, False)), ((2, True), (2, True))))   ->  False

    :param inputs: values of wires 0, 1, ...
    :param gates: gate g has wire len(inputs) + g, and reads two earlier wires
    """

    inputs: tuple[bool, ...]
    gates: tuple[tuple[Wire, Wire], ...]

    def __post_init__(self) -> None:
        if not self.inputs or not self.gates:
            raise JumpsError("a circuit needs at least one input and one gate")
        for g, gate in enumerate(self.gates):
            if any(not 0 <= wire < len(self.inputs) + g for wire, _ in gate):
                raise JumpsError(f"gate {g} must read wires before its own, 0 to {len(self.inputs) + g - 1}")

    def value(self) -> bool:
        """The output, gate by gate."""
        wires = list(self.inputs)
        for (x, not_x), (y, not_y) in self.gates:
            wires.append((wires[x] != not_x) and (wires[y] != not_y))
        return wires[-1]


def program_of(circuit: Circuit) -> Programs:
    """The jump program that halts in B exactly if the circuit's output is true."""
    blocks = [[wire + 1, 0, 1, 1] for wire, value in enumerate(circuit.inputs) if value]  # set the inputs that are 1
    for g, ((x, not_x), (y, not_y)) in enumerate(circuit.gates):
        blocks += [[0, 2 * x + not_x, 1, 3], [0, 2 * y + not_y, 1, 2], [len(circuit.inputs) + g + 1, 0, 1, 1]]
    output = len(circuit.inputs) + len(circuit.gates) - 1
    blocks.append([0, 2 * output, HALT_B, HALT_A])
    return Programs(np.array([blocks], np.int16), np.array([len(blocks)]))


def random_circuit(rng: np.random.Generator, inputs: int, gates: int) -> Circuit:
    """Gates that read any two earlier wires, each negated by a fair coin."""
    def wire(before: int) -> Wire:
        return int(rng.integers(before)), bool(rng.random() < 0.5)

    values: Sequence[bool] = [bool(value) for value in rng.random(inputs) < 0.5]
    return Circuit(tuple(values), tuple((wire(inputs + g), wire(inputs + g)) for g in range(gates)))
