"""torch.utils.dlpack."""

from lamella import from_dlpack as from_dlpack
from lamella.compat._functions import to_dlpack as to_dlpack
