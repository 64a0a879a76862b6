"""Random schemas with arguments: every type of argument in every door of the bridge.

Each operator adds its tensors and numbers, each times the place of its argument counted from 1;
entries of lists times their place in the list as well. BRIDGE_SEED and BRIDGE_CASES choose
others."""

import os
import random
from dataclasses import dataclass

import numpy as np

# What makes a value of each type, of a random generator. A Tensor is an array here.
_MAKERS = {
    "Tensor": lambda r: np.array([r.uniform(-1, 1) for _ in range(3)], np.float32),
    "int": lambda r: r.randint(-9, 9),
    "float": lambda r: r.choice([r.uniform(-3, 3), 0.0, 1e-9]),
    "bool": lambda r: r.random() < 0.5,
    "str": lambda r: r.choice(["", "x", "two words"]),
    "Scalar": lambda r: r.choice([2, -1.5, True]),
}
# Types without a form in every framework's calls go by another door, so they are less of a sample.
_TYPES = [
    "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int", "int?", "int[]", "int[2]", "int[]?",
    "float", "float?", "float[]", "float[]?", "bool", "bool?", "bool[]", "str", "str?", "Scalar",
    "Scalar?",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    name: str
    schema: str
    types: tuple
    values: tuple
    returns: str

    @property
    def tensors(self):
        """The arrays among the values, lists opened."""
        found = []
        for v in self.values:
            if isinstance(v, np.ndarray):
                found.append(v)
            elif isinstance(v, list):
                found += [x for x in v if isinstance(x, np.ndarray)]
        return found

    def arguments(self, convert):
        """The values with each array converted."""

        def one(v):
            if isinstance(v, list):
                return [one(x) for x in v]
            return convert(v) if isinstance(v, np.ndarray) else v

        return [one(v) for v in self.values]

    def weights(self):
        """The factor of each array in the sum."""
        found = []
        for i, v in enumerate(self.values):
            if isinstance(v, np.ndarray):
                found.append(i + 1)
            elif isinstance(v, list):
                found += [(i + 1) * (k + 1) for k, x in enumerate(v) if isinstance(x, np.ndarray)]
        return found

    def expected(self):
        """The results, as one list."""
        total = sum(w * x.astype(np.float64) for w, x in zip(self.weights(), self.tensors))
        numbers = 0.0
        for i, v in enumerate(self.values):
            if isinstance(v, str):
                numbers += (i + 1) * len(v)
            elif isinstance(v, (bool, int, float)):
                numbers += (i + 1) * v
            elif isinstance(v, list) and not self.types[i].startswith("Tensor"):
                numbers += (i + 1) * sum((k + 1) * x for k, x in enumerate(v))
        return [total + numbers] if self.returns == "Tensor" else [total + numbers, total * 2]


def _value(r, type_):
    if type_.endswith("?") and r.random() < 0.3:
        return None
    type_ = type_.removesuffix("?")
    if "[" not in type_:
        return _MAKERS[type_](r)
    element, _, size = type_.partition("[")
    count = int(size[:-1]) if size[:-1] else r.randint(1 if element == "Tensor" else 0, 3)
    if element == "Tensor?":
        return [None if r.random() < 0.4 else _MAKERS["Tensor"](r) for _ in range(count)]
    return [_MAKERS[element](r) for _ in range(count)]


def _case(seed, number):
    r = random.Random(f"{seed} {number}")
    # Every type comes once, in turn, among others.
    types = ["Tensor", _TYPES[number % len(_TYPES)]]
    types += [r.choice(_TYPES) for _ in range(r.randint(0, 5))]
    returns = r.choice(["Tensor", "Tensor", "(Tensor, Tensor)", "Tensor[]"])
    arguments = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
    name = f"case{number}"
    values = tuple(_value(r, t) for t in types)
    return Case(name, f"{name}({arguments}) -> {returns}", tuple(types), values, returns)


CASES = [
    _case(os.environ.get("BRIDGE_SEED", "0"), i)
    for i in range(int(os.environ.get("BRIDGE_CASES", "60")))
]
