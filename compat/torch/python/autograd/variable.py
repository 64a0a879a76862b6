"""torch.autograd.variable."""

from lamella.compat.autograd import Variable as Variable
