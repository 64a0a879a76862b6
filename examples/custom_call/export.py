"""Writes program.hlo: a function of JAX that calls the library's custom call and its operator."""

import pathlib

import jax
import jax.numpy as jnp

LENGTH = 8


def moving_average(x):
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call("moving_average", result, custom_call_api_version=2)
    return call(x, jnp.int64(x.shape[0]))


def soft_clip(x, limit):
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call(
        "smoothing::soft_clip",
        result,
        custom_call_api_version=1,
        legacy_backend_config=f"limit={limit}",
    )
    return call(x)


def program(x, gain):
    smooth = moving_average(x)
    wave = jnp.sin(jnp.arange(LENGTH, dtype=jnp.float32))
    return soft_clip(smooth * gain + wave, 2.0), smooth


jax.config.update("jax_enable_x64", True)
shape = jax.ShapeDtypeStruct((LENGTH,), jnp.float32)
text = jax.jit(program).lower(shape, jax.ShapeDtypeStruct((), jnp.float32)).as_text("hlo")
pathlib.Path(__file__).with_name("program.hlo").write_text(text, encoding="utf-8")
