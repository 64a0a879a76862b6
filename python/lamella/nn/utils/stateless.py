"""The former place of func.functional_call."""

from lamella.nn.utils.functional_call import functional_call as functional_call
