"""Names of the module torch that Lamella lacks or uses with another meaning."""

from __future__ import annotations

import importlib
from typing import Any

import lamella
from lamella.compat import _foreach

_BY_MODULE = {
    "serialization": "save load",
    "_types": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor "
    "IntTensor LongTensor ShortTensor BFloat16Storage BoolStorage ByteStorage CharStorage "
    "ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage "
    "LongStorage ShortStorage set_default_tensor_type qint8 quint8 qint32 quint4x2 quint2x4 "
    "uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 float8_e4m3fnuz "
    "float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2",
    "_checks": "_check _check_index _check_is_size _check_not_implemented _check_tensor_all "
    "_check_type _check_value _check_tensor_all_with _check_with _assert",
    "_settings": "are_deterministic_algorithms_enabled compiled_with_cxx11_abi "
    "get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads "
    "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled "
    "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal "
    "set_num_interop_threads set_warn_always is_anomaly_enabled is_anomaly_check_nan_enabled "
    "set_anomaly_enabled use_deterministic_algorithms has_lapack has_mkl "
    "has_openmp SymBool SymFloat SymInt sym_float sym_int sym_max sym_min sym_not",
    "_functions": "typename is_conj is_inference is_neg is_nonzero is_same_size get_device vander "
    "to_dlpack from_file is_distributed norm_except_dim spmm dsmm hsmm _shape_as_tensor "
    "smm hspmm sspaddmm _assert_async _amp_foreach_non_finite_check_and_unscale_ "
    "_amp_update_scale_ _grouped_mm _segment_reduce cond conv_tbc "
    "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _cast_Long _cast_Float "
    "legacy_contiguous_format sym_ite sym_sum solve lstsq eig symeig lobpcg matrix_rank",
    "_batches": "vmap",
    "_torch_function": "DisableTorchFunction DisableTorchFunctionSubclass",
    "_modes": "get_default_device set_default_device",
    "amp": "GradScaler",
    "_C": "Block CompilationUnit DeviceObjType Graph Node PyTorchFileReader PyTorchFileWriter "
    "TensorType Value",
    "compiler": "compile _disable_dynamo",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule fork wait",
    "cuda": "OutOfMemoryError AcceleratorError",
    "storage": "Storage TypedStorage is_storage",
}

# Maps each name to the module of this package that defines it.
NAMES = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
# Lamella's own versions take precedence, because they are faster.
NAMES |= {
    name: "_foreach"
    for name in _foreach.NAMES
    if name in _foreach.NARROW or not hasattr(lamella, name)
}

# Names whose values change, so they are not cached.
CHANGING = frozenset({"default_generator"})


def find(name: str) -> Any:
    """The value of one of NAMES."""
    return getattr(importlib.import_module(f"lamella.compat.{NAMES[name]}"), name)
