"""Networks: modules and parameters, their first values, and the operators they are made of."""

from lamella.nn import functional as functional
from lamella.nn import init as init
from lamella.nn import utils as utils
from lamella.nn.modules import *  # noqa: F403
from lamella.nn.parameter import Parameter as Parameter
