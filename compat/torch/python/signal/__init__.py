"""torch.signal."""

from lamella.compat.signal import windows as windows
