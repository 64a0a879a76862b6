"""lamella.func: transforms of functions, such as vmap, grad, vjp, jvp, and Jacobians."""

from lamella import _missing
from lamella.func.functionalize import functionalize as functionalize
from lamella.func.jacobians import hessian as hessian
from lamella.func.jacobians import jacfwd as jacfwd
from lamella.func.jacobians import jacrev as jacrev
from lamella.func.transforms import grad as grad
from lamella.func.transforms import grad_and_value as grad_and_value
from lamella.func.transforms import jvp as jvp
from lamella.func.transforms import linearize as linearize
from lamella.func.transforms import value_and_grad as value_and_grad
from lamella.func.transforms import vjp as vjp
from lamella.func.vmap import debug_unwrap as debug_unwrap
from lamella.func.vmap import vmap as vmap
from lamella.nn.utils.functional_call import functional_call as functional_call
from lamella.nn.utils.functional_call import (
    replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_,
)
from lamella.nn.utils.functional_call import stack_module_state as stack_module_state

_missing.suggest(__name__)
