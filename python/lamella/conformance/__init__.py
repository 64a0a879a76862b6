"""Whether a backend does all that Lamella's devices do, and what it still lacks.

    python -m lamella.conformance LIBRARY.so --device sim
    lamella backend-check LIBRARY.so --device sim

Every check runs in a process of its own that loads the library, so that one that crashes or hangs
is a finding like others. _checks.py has the checks of the parts, _operators.py the calls of
operators that are compared with the CPU.
"""

from lamella.conformance._runner import Finding, Report, check_backend

__all__ = ["Finding", "Report", "check_backend"]
