"""Optimizers: they change parameters by their gradients."""

from lamella.optim import lr_scheduler as lr_scheduler
from lamella.optim.adam import Adam as Adam
from lamella.optim.adam import AdamW as AdamW
from lamella.optim.optimizer import Optimizer as Optimizer
from lamella.optim.sgd import SGD as SGD
