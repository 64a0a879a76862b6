"""Queries PyTorch in a separate interpreter, because other tests' imports change the answers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def ask(expression: str) -> Any:
    """The value of an expression in `torch`, as JSON carries it."""
    program = f"import json, torch\nprint(json.dumps({expression}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def registered_schemas() -> list[str]:
    """All that PyTorch registers, but for three of its builds with CUDA that name a C++ type.

    A word in lower case that PyTorch does not know counts as a type variable there.
    """
    schemas = ask("[str(schema) for schema in torch._C._jit_get_all_schemas()]")
    return [schema for schema in schemas if "int64_t" not in schema]
