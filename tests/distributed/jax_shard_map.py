"""One process: a shard_map program on four devices of JAX, exported with its results.

Usage: jax_shard_map.py FOLDER
"""

import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import shard_map
from jax.sharding import Mesh, PartitionSpec

folder = pathlib.Path(sys.argv[1])
rows, whole = PartitionSpec("d", None), PartitionSpec(None, None)


def everything(x, w):
    """Every collective along one axis."""
    i = jax.lax.axis_index("d")
    total, most, least = jax.lax.psum(x, "d"), jax.lax.pmax(x, "d"), jax.lax.pmin(x, "d")
    gathered = jax.lax.all_gather(x, "d", axis=1, tiled=True)
    part = jax.lax.psum_scatter(gathered @ w, "d", scatter_dimension=0, tiled=True)
    turned = jax.lax.all_to_all(x, "d", 0, 0, tiled=True)
    moved = jax.lax.ppermute(x, "d", [(k, (k + 1) % 4) for k in range(4)])
    shifted = jax.lax.ppermute(x, "d", [(k, k + 1) for k in range(3)])
    return jnp.tanh(total) + most * least + moved + shifted + turned * (i + 1), part


def groups(x, w):
    """Sums over groups, and a loop with a collective inside."""
    pair = jax.lax.psum(x, "a")
    column = jax.lax.all_gather(x, "b", tiled=True)
    looped = jax.lax.fori_loop(0, 3, lambda _, y: jax.lax.pmean(y * 1.5, ("a", "b")) + x, x)
    return pair + looped, jax.lax.psum_scatter(column @ w, "b", tiled=True)


def export(name, function, mesh, spec):
    x = np.random.default_rng(1).standard_normal((16, 3)).astype(np.float32)
    w = np.random.default_rng(2).standard_normal((12 if name == "everything" else 3, 5))
    w = w.astype(np.float32)
    mapped = shard_map(function, mesh=mesh, in_specs=(spec, whole), out_specs=(spec, spec))
    program = jax.jit(mapped)
    (folder / f"{name}.hlo").write_text(program.lower(x, w).compile().as_text())
    first, second = program(x, w)
    np.savez(folder / f"{name}.npz", x=x, w=w, first=first, second=second)


devices = np.array(jax.devices())
export("everything", everything, Mesh(devices, ("d",)), rows)
export("groups", groups, Mesh(devices.reshape(2, 2), ("a", "b")), PartitionSpec(("a", "b"), None))
