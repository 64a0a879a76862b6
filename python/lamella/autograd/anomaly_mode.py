"""Anomaly mode: errors in backward show the call in forward, and NaN gradients are errors."""

from __future__ import annotations

import warnings

from lamella import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801
    """Switches anomaly mode on or off: immediately, and until the end of a `with` block if used as
    one.

    check_nan: whether a NaN in the result of an operator's backward is an error.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_C._set_anomaly_enabled(mode), _C._set_nan_check(check_nan))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        anomaly, check_nan = self._before
        _C._set_anomaly_enabled(anomaly)
        _C._set_nan_check(check_nan)


class detect_anomaly:  # noqa: N801
    """A context with anomaly mode on. It is slow, so use it only for debugging."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "detect_anomaly: anomaly mode is on, which is slow; use it for debugging only",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (_C._set_anomaly_enabled(True), _C._set_nan_check(self._check_nan))

    def __exit__(self, *error: object) -> None:
        anomaly, check_nan = self._before
        _C._set_anomaly_enabled(anomaly)
        _C._set_nan_check(check_nan)
