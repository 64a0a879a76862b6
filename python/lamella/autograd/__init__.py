"""lamella.autograd: automatic differentiation."""

from lamella import _missing
from lamella.autograd import forward_ad, function, functional, grad_mode, graph
from lamella.autograd._engine import backward, grad
from lamella.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from lamella.autograd.function import Function
from lamella.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from lamella.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_missing.suggest(__name__)
