"""Names that programs import from modules of PyTorch, mostly private ones, and that Lamella's
modules lack.

They are added when the module under torch that has them, or a part of it, is first imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from lamella.compat._types import DTYPES

# For each module and name: the module and the name of its value.
ADDED = {
    "_tensor_str.PRINT_OPTS": "lamella._tensor_str._options",
    "_tensor_str.printoptions": "lamella.compat._printing.printoptions",
    "_tensor_str._add_suffixes": "lamella.compat._printing._add_suffixes",
    "_tensor_str._str_intern": "lamella.compat._printing._str_intern",
    "_tensor_str._tensor_str": "lamella.compat._printing._tensor_str",
    "autograd.set_multithreading_enabled": "lamella.compat._nn.set_multithreading_enabled",
    "autograd.grad_mode.set_multithreading_enabled": "lamella.compat._nn."
    "set_multithreading_enabled",
    "autograd._is_checkpoint_valid": "lamella.compat._nn._is_checkpoint_valid",
    "library._scoped_library": "lamella._library._scoped_library",
    "library.impl_abstract": "lamella._library.impl_abstract",
    "nn._reduction": "lamella.compat._reduction",
    "nn.Module.dump_patches": "lamella.compat._nn.FALSE",
    "nn.functional._canonical_mask": "lamella.compat._attention_parts._canonical_mask",
    "nn.functional._check_key_padding_mask": "lamella.compat._attention_parts."
    "_check_key_padding_mask",
    "nn.functional._in_projection": "lamella.compat._attention_parts._in_projection",
    "nn.functional._in_projection_packed": "lamella.compat._attention_parts._in_projection_packed",
    "nn.functional._mha_shape_check": "lamella.compat._attention_parts._mha_shape_check",
    "nn.functional._none_or_dtype": "lamella.compat._attention_parts._none_or_dtype",
    "nn.functional._verify_batch_size": "lamella.compat._attention_parts._verify_batch_size",
    "nn.functional.handle_torch_function": "lamella.compat.overrides.handle_torch_function",
    "nn.functional.has_torch_function": "lamella.compat.overrides.has_torch_function",
    "nn.functional.has_torch_function_unary": "lamella.compat.overrides.has_torch_function_unary",
    "nn.functional.has_torch_function_variadic": "lamella.compat.overrides."
    "has_torch_function_variadic",
    "nn.modules.activation.NonDynamicallyQuantizableLinear": "lamella.nn.Linear",
    "nn.utils.clip_grad_norm": "lamella.nn.utils.clip_grad_norm_",
    "nn.utils.convert_conv2d_weight_memory_format": "lamella.compat._nn."
    "convert_conv2d_weight_memory_format",
    "nn.utils.convert_conv3d_weight_memory_format": "lamella.compat._nn."
    "convert_conv3d_weight_memory_format",
    "optim.Optimizer.profile_hook_step": "lamella.compat._nn.PROFILE_HOOK_STEP",
    "sparse.check_sparse_tensor_invariants": "lamella.compat._nn.check_sparse_tensor_invariants",
    "utils.hooks.unserializable_hook": "lamella.compat._nn._same",
    "utils.hooks.warn_if_has_hooks": "lamella.compat._nn.warn_if_has_hooks",
    "nn.Module.compile": "lamella.compat.compiler._compile_in_place",
    "nn.attention.bias": "lamella.compat._attention_bias",
    "nn.attention.flex_attention": "lamella.compat._flex_attention",
    "nn.utils.fusion": "lamella.compat._fusion",
    "nn.functional.grouped_mm": "lamella.compat._functions.grouped_mm",
    "nn.init._calculate_correct_fan": "lamella.compat._nn._calculate_correct_fan",
    "nn.init._no_grad_normal_": "lamella.nn.init.normal_",
    "nn.init._no_grad_uniform_": "lamella.nn.init.uniform_",
    "nn.init._no_grad_trunc_normal_": "lamella.compat._nn._no_grad_trunc_normal_",
    "nn.modules.batchnorm.SyncBatchNorm": "lamella.nn.SyncBatchNorm",
    "nn.modules.module._EXTRA_STATE_KEY_SUFFIX": "lamella.nn.modules._state.EXTRA",
    "nn.modules.module._IncompatibleKeys": "lamella.nn.modules._state.IncompatibleKeys",
    "nn.modules.module.RemovableHandle": "lamella.utils.hooks.RemovableHandle",
    "nn.modules.transformer._get_activation_fn": "lamella.compat._nn._get_activation_fn",
    "nn.modules.loss.CTCLoss": "lamella.nn.CTCLoss",
    "nn.modules.loss.TripletMarginWithDistanceLoss": "lamella.nn.TripletMarginWithDistanceLoss",
    "nn.modules.activation.MultiheadAttention": "lamella.nn.MultiheadAttention",
    "nn.modules.linear.LazyLinear": "lamella.nn.LazyLinear",
    "nn.modules.utils.consume_prefix_in_state_dict_if_present": "lamella.compat._nn."
    "consume_prefix_in_state_dict_if_present",
    "nn.utils.fuse_conv_bn_eval": "lamella.compat._fusion.fuse_conv_bn_eval",
    "nn.utils.fuse_conv_bn_weights": "lamella.compat._fusion.fuse_conv_bn_weights",
    "nn.utils.fuse_linear_bn_eval": "lamella.compat._fusion.fuse_linear_bn_eval",
    "nn.utils.fuse_linear_bn_weights": "lamella.compat._fusion.fuse_linear_bn_weights",
    "optim.lr_scheduler._LRScheduler": "lamella.optim.lr_scheduler.LRScheduler",
    "optim.lr_scheduler._enable_get_lr_call": "lamella.compat._nn._enable_get_lr_call",
    "nn.modules.conv._ConvTransposeMixin": "lamella.nn.modules.conv._ConvTransposeNd",
    "nn.parameter.UninitializedTensorMixin": "lamella.nn.parameter._Uninitialized",
    "nn.parameter._ParameterMeta": "builtins.type",
    "optim.optimizer.ParamsT": "lamella.compat._nn.ParamsT",
    "optim.optimizer._get_capturable_supported_devices": "lamella.compat._nn."
    "_get_capturable_supported_devices",
    "optim.optimizer._use_grad_for_differentiable": "lamella.compat._nn._same",
    "optim.optimizer._default_to_fused_or_foreach": "lamella.compat._nn._neither",
    "optim.optimizer._get_value": "lamella.compat._nn._get_value",
    "optim.optimizer._dispatch_sqrt": "lamella.compat._nn._dispatch_sqrt",
    "optim.optimizer._stack_if_compiling": "lamella.compat._nn._get_value",
    "optim.optimizer._view_as_real": "lamella.compat._nn._view_as_real",
    "storage._load_from_bytes": "lamella.compat.serialization._load_from_bytes",
    "utils.checkpoint.get_device_states": "lamella.compat._nn.get_device_states",
    "utils.checkpoint.set_device_states": "lamella.compat._nn.set_device_states",
    "utils.checkpoint.detach_variable": "lamella.compat._nn.detach_variable",
    "utils.checkpoint.check_backward_validity": "lamella.compat._nn.check_backward_validity",
    "utils.swap_tensors": "lamella.compat._nn.swap_tensors",
}
ADDED |= {
    f"utils.checkpoint.{name}": f"lamella.compat._selective.{name}"
    for name in (
        "CheckpointPolicy",
        "SelectiveCheckpointContext",
        "create_selective_checkpoint_contexts",
    )
}
ADDED |= {
    f"nn.modules.module._global_{kind}_hooks": f"lamella.compat._nn._global_{kind}_hooks"
    for kind in (
        "backward backward_pre buffer_registration forward forward_pre module_registration "
        "parameter_registration"
    ).split()
}

# Classes that are in another module in Lamella than in PyTorch.
_HOMES = {
    "batchnorm": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
    "conv": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
    "LazyConvTranspose3d",
    "instancenorm": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    "loss": "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss",
    "pooling": "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxUnpool1d "
    "MaxUnpool2d MaxUnpool3d",
}
ADDED |= {
    f"nn.modules.{module}.{name}": f"lamella.nn.{name}"
    for module, names in _HOMES.items()
    for name in names.split()
}
ADDED |= {f"sparse.{name}Tensor": f"lamella.compat._types.Sparse{name}Tensor" for name in DTYPES}


def find(path: str) -> object:
    """The object at a dotted path."""
    module, _, name = path.rpartition(".")
    owner = importlib.import_module(module)
    return getattr(owner, name) if hasattr(owner, name) else importlib.import_module(path)


def add(tail: str, find_module: Callable[[str], str | None]) -> None:
    """Adds the missing names of torch.`tail` and of its parts. `find_module` gives the module that
    stands for a module of torch."""
    for path, source in ADDED.items():
        if not f"{path}.".startswith(f"{tail}."):
            continue
        home, _, name = path.rpartition(".")
        found = find_module(home)
        # A path that is not a module is a class.
        owner = find(f"lamella.{home}") if found is None else importlib.import_module(found)
        if name not in vars(owner):
            setattr(owner, name, find(source))
