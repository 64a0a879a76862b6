"""Programs for eight devices, on the plugin and on jaxlib's own CPU client in the same process.

usage: devices.py     prints a line of JSON for each: its name, and what went wrong
"""

import json
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
PROGRAMS = {}
X = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)


def program(function):
    """A function of a mesh of 4 times 2 devices; its results, and their shardings, are compared."""
    PROGRAMS[function.__name__] = function
    return function


def put(mesh, x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def manual(mesh, f, *arguments, given, made, **more):
    mapped = jax.shard_map(f, mesh=mesh, in_specs=given, out_specs=made, **more)
    return jax.jit(mapped)(*arguments)


@program
def pointwise_keeps_the_sharding(mesh):
    return jax.jit(lambda x: jnp.sin(x) * 2 + 1)(put(mesh, X, "a", "b"))


@program
def products_of_sharded_matrices(mesh):
    x, y = put(mesh, X, "a", None), put(mesh, Y, None, "b")
    return jax.jit(lambda x, y: (x @ y, (x @ y).sum()), out_shardings=(None, None))(x, y)


@program
def stated_shardings_of_results(mesh):
    made = NamedSharding(mesh, P("b", "a"))
    return jax.jit(lambda x: x.T @ x, out_shardings=made)(put(mesh, X, "a", "b"))


@program
def constraints(mesh):
    def f(x):
        y = lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P(None, ("a", "b"))))
        return y, y.sum(0)

    return jax.jit(f)(put(mesh, X, "a"))


@program
def another_order_of_devices(mesh):
    turned = Mesh(mesh.devices[::-1].T, ("b", "a"))
    return jax.jit(lambda x: x.cumsum(0))(put(turned, X, "a", "b"))


@program
def donated_parts(mesh):
    x = put(mesh, X, "a", "b")
    made = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    return made


@program
def sums_over_axes(mesh):
    def f(x):
        return lax.psum(x, "a"), lax.pmean(x, ("a", "b")), lax.pmax(x, "b"), lax.pmin(x, "a")

    made = (P(None, "b"), P(), P("a"), P(None, "b"))
    return manual(mesh, f, put(mesh, X, "a", "b"), given=P("a", "b"), made=made)


@program
def gathered_and_scattered(mesh):
    def f(x):
        whole = lax.all_gather(x, "a", tiled=True)
        part = lax.psum_scatter(whole, "a", scatter_dimension=0, tiled=True)
        return whole, part, lax.all_gather(x, "b", axis=1)

    made = (P(None, "b"), P("a", "b"), P("a", None, None))
    return manual(mesh, f, X, given=P("a", "b"), made=made, check_vma=False)


@program
def parts_exchanged(mesh):
    def f(x):
        across = lax.all_to_all(x, "a", split_axis=1, concat_axis=0, tiled=True)
        round_ = lax.ppermute(x, "a", [(0, 1), (1, 2), (2, 3), (3, 0)])
        return across, round_, lax.ppermute(x, "b", [(0, 1)])

    return manual(mesh, f, X, given=P("a", "b"), made=(P("a", "b"),) * 3)


@program
def numbers_of_devices(mesh):
    def f(x):
        place = lax.axis_index("a") * 10 + lax.axis_index(("b", "a"))
        return x * place, jnp.full((1,), place)

    return manual(mesh, f, X, given=P("a", "b"), made=(P("a", "b"), P(("a", "b"))))


@program
def collectives_in_loops(mesh):
    def f(x):
        def step(carry, _):
            carry = lax.ppermute(carry, "a", [(i, (i + 1) % 4) for i in range(4)]) * 0.5
            return carry, lax.psum(carry.sum(), ("a", "b"))

        return lax.scan(step, x, None, length=7)

    return manual(mesh, f, X, given=P("a", "b"), made=(P("a", "b"), P()))


@program
def some_axes_manual(mesh):
    def f(x):
        return lax.psum(jnp.sin(x), "a")

    return manual(mesh, f, put(mesh, X, "a", "b"), given=P("a"), made=P(), axis_names={"a"})


@program
def regions_within_regions(mesh):
    def inner(x):
        return lax.psum(lax.psum(x, "b"), "a")

    def outer(x):
        return jax.shard_map(inner, in_specs=P(None, "b"), out_specs=P(), axis_names={"b"})(x)

    return manual(mesh, outer, X, given=P("a"), made=P(), axis_names={"a"})


@program
def derivatives_through_collectives(mesh):
    def f(w, x):
        return lax.pmean(((x @ w) ** 2).mean(), ("a", "b"))

    def loss(w, x):
        return jax.shard_map(f, mesh=mesh, in_specs=(P(), P(("a", "b"))), out_specs=P())(w, x)

    return jax.jit(jax.value_and_grad(loss))(Y, X)


@program
def one_program_for_each_device(mesh):
    devices = list(mesh.devices.flat)
    f = jax.pmap(lambda x: (lax.psum(x, "i"), x * lax.axis_index("i")), "i", devices=devices)
    return f(X)


@program
def terms_of_sums(mesh):
    explicit = Mesh(mesh.devices, ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(explicit):
        x, y = put(explicit, X, None, "a"), put(explicit, Y, "a", None)
        terms = jax.jit(lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P(unreduced={"a"})))
        return jax.jit(lambda z: jax.reshard(z, P()))(terms(x, y))


@program
def errors_reach_all_devices(mesh):
    def fail(x):
        raise ValueError("expected")

    def f(x):
        x = jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return lax.psum(x, "a")

    try:
        jax.block_until_ready(manual(mesh, f, X, given=P("a", "b"), made=P(None, "b")))
    except Exception as error:  # noqa: BLE001
        return jnp.array("expected" in str(error))
    return jnp.array(False)


@program
def random_numbers(mesh):
    made = NamedSharding(mesh, P("a", "b"))
    draw = jax.jit(lambda key: jax.random.normal(key, (8, 16)), out_shardings=made)
    return draw(jax.random.key(3))


def results(function, devices):
    with jax.default_device(devices[0]):
        return function(Mesh(np.array(devices[:8]).reshape(4, 2), ("a", "b")))


def main():
    ours, theirs = jax.devices("lamella"), jax.devices("cpu")
    for name, function in PROGRAMS.items():
        problem = None
        try:
            got, want = results(function, ours), results(function, theirs)
            for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-6, atol=1e-5)
                parts = [(s.index, np.shape(s.data)) for s in a.addressable_shards]
                assert parts == [(s.index, np.shape(s.data)) for s in b.addressable_shards], (
                    a.sharding, b.sharding)  # fmt: skip
        except Exception:  # noqa: BLE001
            problem = traceback.format_exc()[-3000:]
        print(json.dumps([name, problem]), flush=True)


if __name__ == "__main__":
    main()
