"""The error of calls that need a device that there is none of."""


class NoDeviceError(RuntimeError, AssertionError):
    """There is no CUDA device: PyTorch says so by an AssertionError where it is built without
    CUDA, and by a RuntimeError where it is built with it."""
