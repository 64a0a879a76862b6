"""Checks the library of a backend, and reports what is missing or wrong.

    python -m lamella.conformance LIBRARY.so --device sim
    lamella backend-check LIBRARY.so --device sim

The checks run in child processes that load the library, so that a crash or a hang of one is
reported like other failures. _checks.py has the checks of parts of a backend, _operators.py
compares operators with the CPU.
"""

from lamella.conformance._runner import Finding, Report, check_backend

__all__ = ["Finding", "Report", "check_backend"]
