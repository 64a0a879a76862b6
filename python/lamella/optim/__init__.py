"""Optimizers: they change parameters by their gradients."""

from lamella import _missing
from lamella.optim import lr_scheduler as lr_scheduler
from lamella.optim import swa_utils as swa_utils
from lamella.optim.adam import Adam as Adam
from lamella.optim.adam import AdamW as AdamW
from lamella.optim.adaptive import *  # noqa: F403
from lamella.optim.lbfgs import LBFGS as LBFGS
from lamella.optim.matrices import *  # noqa: F403
from lamella.optim.optimizer import Optimizer as Optimizer
from lamella.optim.sgd import SGD as SGD
from lamella.optim.step_sizes import *  # noqa: F403

_missing.suggest(__name__)
