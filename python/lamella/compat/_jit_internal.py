"""torch._jit_internal, as far as programs reach into it."""

from typing import Final as Final

from lamella.compat.jit import _overload as _overload
from lamella.compat.jit import _overload_method as _overload_method
from lamella.compat.jit import export as export
from lamella.compat.jit import ignore as ignore
from lamella.compat.jit import is_scripting as is_scripting
from lamella.compat.jit import unused as unused
