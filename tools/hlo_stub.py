#!/usr/bin/env python3
"""Writes the stub of the builder's functions and the element types from the module's tables.

usage: hlo_stub.py FILE   (with the built package on the path)
"""

import pathlib
import sys

HEAD = """# Written by hlo_stub.py from the tables of lamella._hlo.
# ruff: noqa: E501
import builtins
import enum
from collections.abc import Sequence
from typing import Any, overload

from lamella._hlo import Builder, ElementLike, Module, Op, OpLike, ShapeLike
from lamella.hlo._types import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

"""


def parameter(name, annotation, optional):
    # One of the functions has the name of the type.
    annotation = annotation.replace("tuple[", "builtins.tuple[")
    return f"{name}: {annotation}" + (" = ..." if optional else "")


def stub():
    from lamella import _hlo

    text = [HEAD, "class ElementType(str, enum.Enum):\n"]
    text += [f'    {one.upper()} = "{one}"\n' for one, _, _ in _hlo._element_types]
    for name, parameters, _ in _hlo._builder_signatures():
        if name.startswith("_"):
            continue
        forms = [", ".join(parameter(*one) for one in parameters)]
        if parameters[0][0] == "builder" and any("OpLike" in kind for _, kind, _ in parameters):
            # The builder may be left out: an op among the arguments has one.
            forms.append(", ".join(parameter(*one) for one in parameters[1:]))
        for form in forms:
            text.append("@overload\n" if len(forms) > 1 else "")
            text.append(f"def {name}({form}) -> Op: ...\n")
    return "".join(text)


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(stub())
