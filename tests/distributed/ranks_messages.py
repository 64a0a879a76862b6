"""Every rank: gradients of messages, and programs that keep side effects on other ranks."""

import lamella
import lamella.distributed as dist

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist
assert size > 1
before, after = (rank - 1) % size, (rank + 1) % size


def like(*shape):
    """A tensor for recv, which requires the gradient of the received values."""
    return lamella.empty(*shape, dtype=lamella.float64, requires_grad=True)


def same(got, expected):
    assert got.dtype == expected.dtype and got.tolist() == expected.tolist(), (got, expected)


# A pipeline: each rank is a stage, and the last has the loss.
for count in (3, 200_000):
    lamella.manual_seed(1)
    weights = [lamella.randn(count, dtype=lamella.float64) for _ in range(size)]
    start = lamella.randn(count, dtype=lamella.float64)
    w = weights[rank].clone().requires_grad_()
    x = start if rank == 0 else ops.recv(like(count), before)
    y = (x * w).sin()
    loss = (y * y).sum() if rank == size - 1 else ops.send(y, after)
    loss.backward()
    alone = [v.clone().requires_grad_() for v in weights]
    z = start
    for v in alone:
        z = (z * v).sin()
    (expected,) = lamella.autograd.grad((z * z).sum(), [alone[rank]])
    same(w.grad, expected)

# Two ranks that answer each other, several messages of one tag, with long and short graphs between,
# so that the depth of a graph does not give the order of its messages. All are larger than what MPI
# buffers.
if rank < 2:
    count = 100_000
    a = lamella.full([count], 0.5, dtype=lamella.float64).requires_grad_()
    other = 1 - rank

    def deep(t):
        for _ in range(20):
            t = t * 1.01
        return t

    def exchange(first, second):
        """The computation of both ranks, with `first` on rank 0; returns both losses."""
        one = deep(first)
        two = second * one
        three = two * first + one
        return one.sum() * 2 + three.sum() * 3, two.sum() * 5 + three.mul(two).sum()

    if rank == 0:
        one = deep(a)
        sent = ops.send(one, other)
        two = ops.recv(like(count), other)
        three = two * a + one
        again = ops.send(three, other)
        loss = one.sum() * 2 + three.sum() * 3 + again + sent
    else:
        one = ops.recv(like(count), other)
        two = a * one
        sent = ops.send(two, other)
        three = ops.recv(like(count), other)
        loss = two.sum() * 5 + three.mul(two).sum() + sent
    loss.backward()
    both = [a.detach().clone().requires_grad_() for _ in range(2)]
    expected = lamella.autograd.grad(sum(exchange(*both)), both)[rank]
    assert lamella.allclose(a.grad, expected, rtol=1e-12, atol=1e-12)

    # A second derivative would be wrong without the other rank's part, so it is refused.
    if rank == 0:
        b = lamella.tensor([0.3, 0.7], dtype=lamella.float64, requires_grad=True)
        (first,) = lamella.autograd.grad(ops.send(b * b, 1), [b], create_graph=True)
        assert lamella.allclose(first.detach(), 6 * b.detach() ** 5, rtol=1e-12, atol=0.0)
        try:
            lamella.autograd.grad(first.sum(), [b])
        except RuntimeError as error:
            text = "recv: the gradient of a message cannot be differentiated again"
            assert text in str(error), error
        else:
            raise AssertionError("expected a second derivative to be refused")
    else:
        ops.recv(like(2), 0).pow(3).sum().backward()

# Tags and the uneven ends of messages that pass each other.
works = [
    dist.irecv(got := lamella.empty(4), before, tag=1),
    dist.irecv(other_one := lamella.empty(2), before, tag=2),
    dist.isend(lamella.full([2], rank + 0.5), after, tag=2),
    dist.isend(lamella.full([4], float(rank)), after, tag=1),
]
for work in works:
    work.wait()
same(got, lamella.full([4], float(before)))
same(other_one, lamella.full([2], before + 0.5))


# Programs keep collectives with unused results, in their order.
def acts(x):
    ops.all_reduce(x + 1)
    ops.broadcast(lamella.ones(3), 0)
    ops.barrier()
    if rank == 0:
        ops.send(x * 3, 1)
    elif rank == 1:
        return ops.recv(lamella.empty(2), 0) + x * 0
    return x * 2


x = lamella.ones(2)
expected = lamella.full([2], 3.0 if rank == 1 else 2.0)
graph = lamella.trace(acts, x)
graph.eliminate_dead_code()
names = list(graph.operators())
for name in ("all_reduce", "broadcast", "barrier"):
    assert any(name in n for n in names), (name, names)
same(graph(x), expected)
compiled = lamella.compile(acts)
for _ in range(3):
    same(compiled(x), expected)


# A compiled program and its gradient exchange what the function does.
def stage(x, w):
    if rank == 0:
        kept = x * w
        sent = ops.send(kept, 1)
    elif rank == 1:
        kept = ops.recv(x * 0, 0) * w
        sent = x.sum() * 0
    else:
        kept, sent = x * w, x.sum() * 0
    ops.all_reduce(kept.detach())
    return (kept * kept * kept).sum() + sent


compiled = lamella.compile(stage, fullgraph=True)
for _ in range(3):
    grads = []
    for f in (stage, compiled):
        a = lamella.full([50_000], 0.5, dtype=lamella.float64).requires_grad_()
        b = lamella.full([50_000], 2.0 + rank, dtype=lamella.float64).requires_grad_()
        f(a, b).backward()
        grads.append((a.grad, b.grad))
    for got, expected in zip(*grads):
        assert (got is None) == (expected is None)
        assert got is None or lamella.allclose(got, expected, rtol=1e-12, atol=0.0)

# Ranks whose graphs differ in depth reduce in one order in backward.
x = lamella.ones(3, requires_grad=True)
y = x
for _ in range(3 + 10 * rank):
    y = y * 1.0
one, two = ops.all_reduce(y), ops.all_reduce(x * 2)
if rank % 2:
    two, one = two * 1.0, one
(one.sum() + (two * two).sum()).backward()
total = lamella.ones(3) * (size + 2 * (2 * size) * 2 * size)
same(x.grad, total)


# So they do in what functions written in Python do in backward, which forward does not tell.
class Meet(lamella.autograd.Function):
    @staticmethod
    def forward(ctx, x, count):
        ctx.count = count
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * ops.all_reduce(lamella.ones(ctx.count)).mean(), None


for _ in range(2):
    x = lamella.ones(3, requires_grad=True)
    one, two = x, x
    for _ in range(1 + 10 * rank):
        one = one * 1.0
    for _ in range(1 + 10 * (size - rank)):
        two = two * 1.0
    one = Meet.apply(one, 4000)
    two = Meet.apply(two, 5000)
    three = ops.all_reduce(one)
    (three.sum() + two.sum()).backward()
    same(x.grad, lamella.full([3], float(size * size + size)))
dist.barrier()
print("rank", rank, "done")
