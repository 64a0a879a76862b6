"""Training programs of libraries on JAX, on the plugin and on jaxlib's own CPU client.

usage: training.py [NAME...]     prints a line of JSON for each: its name, and what went wrong

Each gives its losses, which must be equal on both up to rounding. A program whose library is absent
is left out.
"""

import functools
import importlib.util
import json
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np

PROGRAMS = {}
STEPS = 6


def needs(*modules):
    def add(function):
        if all(importlib.util.find_spec(name) for name in modules):
            PROGRAMS[function.__name__] = function
        return function

    return add


def data(rows=32, columns=8, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns)).astype(np.float32)
    return jnp.array(x), jnp.array(np.sin(x).sum(1, keepdims=True).astype(np.float32))


def descend(loss, parameters, optimizer, steps=STEPS):
    """Losses of a function of the parameters under an optimizer of optax."""
    import optax

    @jax.jit
    def step(parameters, state):
        value, slope = jax.value_and_grad(loss)(parameters)
        changes, state = (
            optimizer.update(slope, state, parameters, value=value)
            if isinstance(optimizer, optax.GradientTransformationExtraArgs)
            else optimizer.update(slope, state, parameters)
        )
        return optax.apply_updates(parameters, changes), state, value

    state, values = optimizer.init(parameters), []
    for _ in range(steps):
        parameters, state, value = step(parameters, state)
        values.append(value)
    return values


def layers(sizes=(8, 16, 1)):
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    return [
        {"w": jax.random.normal(key, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)}
        for key, a, b in zip(keys, sizes[:-1], sizes[1:])
    ]


def perceptron(parameters, x):
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ parameters[-1]["w"] + parameters[-1]["b"]


def squares(parameters):
    x, y = data()
    return ((perceptron(parameters, x) - y) ** 2).mean()


def with_optimizer(name, make):
    def function():
        return descend(squares, layers(), make())

    function.__name__ = f"optax_{name}"
    needs("optax")(function)


def optax_of(name, *args, **kwargs):
    import optax

    return functools.reduce(getattr, name.split("."), optax)(*args, **kwargs)


with_optimizer("adamw", lambda: optax_of("adamw", 1e-2, weight_decay=1e-3))
with_optimizer("lion", lambda: optax_of("lion", 1e-3))
with_optimizer("lamb", lambda: optax_of("lamb", 1e-2))
with_optimizer("adafactor", lambda: optax_of("adafactor", 1e-2))
with_optimizer("lbfgs", lambda: optax_of("scale_by_lbfgs"))
with_optimizer(
    "clipped_with_schedule",
    lambda: optax_of("chain", optax_of("clip_by_global_norm", 1.0),
                     optax_of("sgd", optax_of("cosine_decay_schedule", 0.1, 6), momentum=0.9)),
)  # fmt: skip


@needs("flax", "optax")
def flax_convolutions():
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(linen.Conv(8, (3, 3))(x))
            x = linen.avg_pool(x, (2, 2), (2, 2))
            x = linen.relu(linen.Conv(8, (3, 3), padding="VALID")(x))
            return linen.Dense(4)(x.reshape(len(x), -1))

    x = jax.random.normal(jax.random.key(1), (8, 12, 12, 3))
    labels = jnp.arange(8) % 4
    net = Net()

    def loss(p):
        wrong = optax_of("softmax_cross_entropy_with_integer_labels", net.apply(p, x), labels)
        return wrong.mean()

    return descend(loss, net.init(jax.random.key(0), x), optax_of("adam", 1e-2))


@needs("flax", "optax")
def flax_attention():
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            mask = linen.make_causal_mask(x[..., 0])
            y = linen.MultiHeadDotProductAttention(num_heads=2)(linen.LayerNorm()(x), mask=mask)
            x = x + y
            y = linen.Dense(16)(linen.gelu(linen.Dense(32)(linen.LayerNorm()(x))))
            return linen.Dense(11)(x + y)

    class Model(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            return Block()(linen.Embed(11, 16)(tokens))

    tokens = jax.random.randint(jax.random.key(1), (4, 9), 0, 11)
    model = Model()

    def loss(p):
        made = model.apply(p, tokens[:, :-1])
        return optax_of("softmax_cross_entropy_with_integer_labels", made, tokens[:, 1:]).mean()

    return descend(loss, model.init(jax.random.key(0), tokens[:, :-1]), optax_of("adamw", 3e-3))


@needs("flax", "optax")
def flax_recurrent():
    from flax import linen

    cells = linen.RNN(linen.LSTMCell(12))
    x, y = jax.random.normal(jax.random.key(1), (6, 10, 4)), jnp.ones((6, 10, 12)) / 3
    return descend(
        lambda p: ((cells.apply(p, x) - y) ** 2).mean(),
        cells.init(jax.random.key(0), x),
        optax_of("rmsprop", 1e-2),
    )


@needs("flax", "optax")
def flax_batch_norm_and_dropout():
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=False)(linen.Dense(16)(x))
            x = linen.Dropout(0.3, deterministic=False)(linen.swish(x))
            return linen.Dense(1)(x)

    x, y = data()
    net = Net()
    rngs = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    variables = net.init(rngs, x)

    def loss(p):
        made, _ = net.apply(
            {**variables, "params": p}, x, rngs={"dropout": jax.random.key(2)},
            mutable=["batch_stats"],
        )  # fmt: skip
        return ((made - y) ** 2).mean()

    return descend(loss, variables["params"], optax_of("adam", 1e-2))


@needs("flax", "optax")
def flax_nnx():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.norm = nnx.Linear(8, 16, rngs=rngs), nnx.LayerNorm(16, rngs=rngs)
            self.last = nnx.Linear(16, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x))))

    x, y = data()
    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax_of("adam", 1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer):
        value, slope = nnx.value_and_grad(lambda net: ((net(x) - y) ** 2).mean())(net)
        optimizer.update(net, slope)
        return value

    return [step(net, optimizer) for _ in range(STEPS)]


@needs("equinox", "optax")
def equinox_perceptron():
    import equinox

    net = equinox.nn.MLP(8, 1, 16, 2, key=jax.random.key(0))
    x, y = data()
    parts, rest = equinox.partition(net, equinox.is_inexact_array)

    def loss(p):
        return ((jax.vmap(equinox.combine(p, rest))(x) - y) ** 2).mean()

    return descend(loss, parts, optax_of("adam", 1e-2))


@needs("equinox", "optax")
def equinox_recurrent():
    import equinox

    cell = equinox.nn.GRUCell(4, 8, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (5, 12, 4))

    def loss(cell):
        def one(row):
            return jax.lax.scan(lambda h, u: (cell(u, h), None), jnp.zeros(8), row)[0]

        return ((jax.vmap(one)(x) - 0.5) ** 2).mean()

    parts, rest = equinox.partition(cell, equinox.is_inexact_array)
    return descend(lambda p: loss(equinox.combine(p, rest)), parts, optax_of("adam", 1e-2))


def trajectory(solver, field, parameters):
    import diffrax

    saved = diffrax.SaveAt(ts=jnp.linspace(0, 2, 9))
    made = diffrax.diffeqsolve(
        diffrax.ODETerm(field), solver, 0, 2, 0.05, jnp.array([1.0, 0.5]), parameters,
        saveat=saved, stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
    )  # fmt: skip
    return made.ys


@needs("diffrax", "optax")
def diffrax_parameters_of_an_oscillator():
    import diffrax

    def field(t, y, p):
        return jnp.array([y[1], -p["k"] * y[0] - p["c"] * y[1]])

    want = trajectory(diffrax.Tsit5(), field, {"k": jnp.array(2.0), "c": jnp.array(0.3)})
    return descend(
        lambda p: ((trajectory(diffrax.Tsit5(), field, p) - want) ** 2).mean(),
        {"k": jnp.array(1.0), "c": jnp.array(0.1)},
        optax_of("adam", 0.1),
    )


@needs("diffrax", "optax", "equinox")
def diffrax_neural_equation():
    import diffrax
    import equinox

    net = equinox.nn.MLP(2, 2, 8, 1, activation=jnp.tanh, key=jax.random.key(0))
    parts, rest = equinox.partition(net, equinox.is_inexact_array)

    def loss(p):
        made = trajectory(diffrax.Heun(), lambda t, y, p: equinox.combine(p, rest)(y), p)
        return ((made - 0.25) ** 2).mean()

    return descend(loss, parts, optax_of("adam", 1e-2))


@needs("numpyro")
def numpyro_variational():
    import numpyro
    from numpyro import distributions
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    x, y = data(24, 3)

    def model():
        w = numpyro.sample("w", distributions.Normal(jnp.zeros(3), 1).to_event(1))
        scale = numpyro.sample("scale", distributions.HalfNormal(1.0))
        numpyro.sample("y", distributions.Normal(x @ w, scale), obs=y[:, 0])

    guide = autoguide.AutoNormal(model)
    svi = SVI(model, guide, numpyro.optim.Adam(0.02), Trace_ELBO())
    return svi.run(jax.random.key(0), 30, progress_bar=False).losses


@needs("numpyro")
def numpyro_hamiltonian():
    import numpyro
    from numpyro import distributions
    from numpyro.infer import HMC, MCMC

    x, y = data(16, 2)

    def model():
        w = numpyro.sample("w", distributions.Normal(jnp.zeros(2), 1).to_event(1))
        numpyro.sample("y", distributions.Normal(x @ w, 0.7), obs=y[:, 0])

    chain = HMC(model, step_size=0.05, num_steps=4, adapt_step_size=False, adapt_mass_matrix=False)
    sampler = MCMC(chain, num_warmup=2, num_samples=6, progress_bar=False)
    sampler.run(jax.random.key(0))
    return sampler.get_samples()["w"]


@needs("optax")
def pendulum_with_a_policy():
    """A policy is trained through the steps of a simulation, as brax does."""

    def step(state, force):
        angle, speed = state
        speed = speed + 0.05 * (-9.8 * jnp.sin(angle) + force)
        return (angle + 0.05 * speed, speed), angle

    def loss(parameters):
        def rollout(start):
            def one(state, _):
                force = perceptron(parameters, jnp.stack(state))[0]
                state, angle = step(state, 5 * jnp.tanh(force))
                return state, jnp.cos(angle) + 0.001 * force**2

            return jax.lax.scan(one, (start, jnp.float32(0)), None, length=40)[1].mean()

        return jax.vmap(rollout)(jnp.linspace(-1, 1, 16, dtype=jnp.float32)).mean()

    return descend(loss, layers((2, 16, 1)), optax_of("adam", 1e-2))


@needs("optax")
def springs_of_many_bodies():
    """Masses on springs, whose stiffness is fitted; forces are scattered to pairs, as brax does."""
    a, b = jnp.arange(15), (jnp.arange(15) * 7 + 1) % 16

    def simulate(stiffness):
        def step(state, _):
            x, v = state
            d = x[a] - x[b]
            length = jnp.sqrt((d**2).sum(1, keepdims=True) + 1e-3)
            force = -stiffness[:, None] * (length - 1) * d / length
            v = 0.99 * (v + 0.02 * jnp.zeros_like(v).at[a].add(force).at[b].add(-force))
            return (x + 0.02 * v, v), None

        start = jax.random.normal(jax.random.key(0), (16, 3))
        return jax.lax.scan(step, (start, jnp.zeros((16, 3))), None, length=30)[0][0]

    want = simulate(jnp.full(15, 2.0))
    return descend(
        lambda k: ((simulate(k) - want) ** 2).mean(), jnp.ones(15), optax_of("adam", 0.1)
    )


@needs("optax")
def checkpointed_and_in_bfloat16():
    def loss(parameters):
        x, y = data()
        small = jax.tree.map(lambda p: p.astype(jnp.bfloat16), parameters)
        made = jax.checkpoint(perceptron)(small, x.astype(jnp.bfloat16))
        return ((made.astype(jnp.float32) - y) ** 2).mean()

    return descend(loss, layers((8, 32, 16, 1)), optax_of("adam", 1e-2))


def main(names):
    devices = {name: jax.devices(name)[0] for name in ("lamella", "cpu")}
    for name in names or PROGRAMS:
        problem, made = None, {}
        try:
            for platform, device in devices.items():
                with jax.default_device(device):
                    made[platform] = np.array(jnp.array(PROGRAMS[name]()), np.float64)
                jax.clear_caches()
            loose = 2e-2 if "bfloat16" in name else 2e-4
            assert np.isfinite(made["cpu"]).all() and made["cpu"].size >= STEPS, made
            np.testing.assert_allclose(made["lamella"], made["cpu"], rtol=loose, atol=loose / 20)
        except Exception:  # noqa: BLE001
            problem = traceback.format_exc()[-3000:]
        print(json.dumps([name, problem]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
