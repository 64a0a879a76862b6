"""XLA as an oracle: HLO text compiled and run by jaxlib's CPU client."""

from __future__ import annotations

import functools

import numpy as np


@functools.lru_cache(maxsize=16)
def compiled(text: str):
    import jax
    from jaxlib import _hlo, _jax

    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    device = jax.local_devices(backend="cpu")[0]
    devices = _jax.DeviceList((device,))
    options = _jax.CompileOptions()
    # The programs are small: compiling them is what takes time.
    options.executable_build_options.debug_options.xla_backend_optimization_level = 0
    return device.client.compile_and_load(mlir, devices, options)


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The arrays of the program's result, tuples flattened. Elements keep the widths that the text
    gives them. XLA's CPU programs flush subnormal numbers to 0."""
    import jax

    device = jax.local_devices(backend="cpu")[0]
    with jax.enable_x64(True):
        buffers = [jax.device_put(array, device) for array in arrays]
        return [np.asarray(one) for one in compiled(text).execute(buffers)]
