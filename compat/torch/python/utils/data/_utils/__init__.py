"""torch.utils.data._utils, as far as programs use it."""

from lamella.compat.utils.data._utils import collate as collate
from lamella.compat.utils.data._utils import worker as worker
