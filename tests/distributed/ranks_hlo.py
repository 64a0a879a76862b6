"""Every rank is one device of the programs that jax_shard_map.py exported.

Usage: ranks_hlo.py FOLDER
"""

import pathlib
import sys

import numpy as np

import lamella
import lamella.distributed as dist

folder = pathlib.Path(sys.argv[1])
dist.init_process_group()
rank = dist.get_rank()
for name in ("everything", "groups"):
    text = (folder / f"{name}.hlo").read_text()
    known = np.load(folder / f"{name}.npz")
    part = {key: np.split(known[key], 4)[rank] for key in ("x", "first", "second")}
    inputs = lamella.from_numpy(part["x"].copy()), lamella.from_numpy(known["w"])
    for results in (lamella.hlo.evaluate(text, *inputs), lamella.hlo.compile(text)(*inputs)):
        for got, expected in zip(results, (part["first"], part["second"])):
            np.testing.assert_allclose(got.numpy(), expected, rtol=2e-6, atol=2e-6)
alone = """HloModule pair, num_partitions=2
ENTRY e { ROOT i = u32[] partition-id() }"""
try:
    lamella.hlo.evaluate(alone)
except RuntimeError as error:
    assert "expected a job of 2 ranks, one for each device of the module, got 4" in str(
        error
    ), error
else:
    raise AssertionError("expected a module of two devices to be refused")
print("rank", rank, "done")
