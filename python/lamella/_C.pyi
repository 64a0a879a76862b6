# The extension module. Its public part is typed in lamella's own stub.
from typing import Any

def __getattr__(name: str) -> Any: ...
