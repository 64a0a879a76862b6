"""Every rank: random sequences of collectives over random groups, against one process's reference.

All ranks draw the same numbers, so each knows the values and the calls of all others.
Usage: ranks_sequences.py COUNT SEED
"""

import sys

import numpy as np

import lamella
import lamella.distributed as dist

count, seed = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
ops = lamella.ops.dist
DTYPES = [getattr(lamella, name) for name in ("float32", "float64", "int32", "bfloat16", "int64")]


def split(random, rows, parts):
    """Numbers of rows whose sum is `rows`."""
    cuts = sorted(int(random.integers(0, rows + 1)) for _ in range(parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, rows])]


def reference(name, values, op, root, sizes, table):
    """The results of a group's ranks, from the values of all of them."""
    n = len(values)
    ends = np.cumsum([0, *(sizes or [])])
    if name in ("all_reduce", "reduce_scatter"):
        whole = values[0]
        for v in values[1:]:
            whole = whole + v if op == "sum" else getattr(lamella, op + "imum")(whole, v)
        if name == "all_reduce":
            return [whole] * n
        return [whole[ends[r] : ends[r + 1]] for r in range(n)]
    if name == "broadcast":
        return [values[root]] * n
    if name == "all_gather":
        return [lamella.cat(values)] * n
    if name == "gather":
        return [lamella.cat(values) if r == root else values[r][:0] for r in range(n)]
    if name == "scatter":
        return [values[root][ends[r] : ends[r + 1]] for r in range(n)]
    results = []  # all_to_all: rank s sends table[s][r] rows to rank r
    for r in range(n):
        parts = []
        for s in range(n):
            begin = sum(table[s][:r])
            parts.append(values[s][begin : begin + table[s][r]])
        results.append(lamella.cat(parts))
    return results


NAMES = [
    "all_reduce",
    "reduce_scatter",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "all_to_all",
]
for number in range(count):
    random = np.random.default_rng([seed, number])
    pending = []
    for _ in range(int(random.integers(2, 6))):
        members = [int(r) for r in random.permutation(size)[: random.integers(1, size + 1)]]
        n = len(members)
        name = NAMES[random.integers(len(NAMES))]
        dtype = DTYPES[random.integers(len(DTYPES))]
        op = ["sum", "min", "max"][random.integers(3)]
        root = int(random.integers(n))
        later = bool(random.integers(2))  # begun, and waited for at the end of the sequence
        fixed = bool(random.integers(2))
        width = int(random.integers(1, 4))
        rows = int(random.integers(0, 40))
        table = [split(random, int(random.integers(0, 12)), n) for _ in range(n)]
        sizes = None
        if name in ("reduce_scatter", "scatter", "all_gather", "gather"):
            sizes = split(random, rows, n)
        counts = [rows] * n
        if name in ("all_gather", "gather"):
            counts = sizes
        elif name == "all_to_all":
            counts = [sum(t) for t in table]
        values = [lamella.from_numpy(random.integers(-5, 6, (c, width))).to(dtype) for c in counts]
        expected = reference(name, values, op, root, sizes, table)
        if rank not in members:
            continue
        me = members.index(rank)
        group = dist.new_group(members, sort_ranks=False).number
        mine = values[me].clone()
        more = {"op": op} if "reduce" in name else {}
        if "reduce" in name:
            more["deterministic"] = fixed
        received = [t[me] for t in table]
        if later:
            out = lamella.empty(expected[me].shape, dtype=dtype)
            if name in ("broadcast", "gather", "scatter"):
                more["peer"] = root
            if name == "all_to_all":
                more.update(rows=received, send_rows=table[me])
            elif sizes is not None:
                more["rows"] = sizes
            pending.append(
                (name, ops.start(name, mine, out, group=group, **more), out, expected[me], mine)
            )
            continue
        if name in ("broadcast", "gather", "scatter"):
            more["root"] = root
        if name == "all_to_all":
            more.update(send_sizes=table[me], receive_sizes=received)
        elif sizes is not None:
            more["sizes"] = sizes
        got = getattr(ops, name)(mine, group=group, **more)
        assert got.tolist() == expected[me].tolist(), (number, name, members, got, expected[me])
    for i in random.permutation(len(pending)):
        name, work, out, wanted, _ = pending[i]
        ops.wait(work)
        assert out.tolist() == wanted.tolist(), (number, name, out, wanted)
print("rank", rank, "did", count)
