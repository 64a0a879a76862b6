"""Facts of PyTorch's, asked of an interpreter of their own: imports of other tests add to them."""

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
