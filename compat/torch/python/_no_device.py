"""The error of calls that need an absent device."""


class NoDeviceError(RuntimeError, AssertionError):
    """There is no CUDA device. PyTorch raises an AssertionError in builds without CUDA and a
    RuntimeError in builds with it, so this error is both."""
