"""Every rank: works until a failure. Usage: ranks_failing.py WHAT

die: collectives until a signal; raise: rank 1 raises; exit: rank 1 exits; sleep: rank 0 keeps rank
1 waiting; shapes, operators, absent: ranks make mismatched calls, in debug mode.
"""

import os
import sys
import time

import lamella
import lamella.distributed as dist

what = sys.argv[1]
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
x = lamella.ones(1000)
pids = [None] * size
dist.all_gather_object(pids, os.getpid())
dist.barrier()
if rank == 0:
    print("pids", *pids, flush=True)
if what == "die":
    while True:
        dist.all_reduce(x, "max")
        work = dist.broadcast(x, async_op=True)
        dist.all_gather_into_tensor(lamella.empty(1000 * size), x)
        work.wait()
elif what == "raise":
    if rank == 1:
        raise KeyError("the data of rank 1")
    dist.broadcast(x, 1)
elif what == "exit":
    if rank != 1:
        dist.all_reduce(x)
elif what == "sleep":
    if rank == 0:
        time.sleep(60)
    dist.all_reduce(x)
else:
    try:
        if what == "shapes":
            dist.all_reduce(lamella.ones(2 + rank, 3))
        elif what == "operators":
            dist.all_reduce(x) if rank == 0 else dist.broadcast(x)
        elif what == "absent":
            if rank == 1:
                time.sleep(5)
            else:
                dist.all_reduce(x)
    except RuntimeError as error:
        print(f"rank {rank} was told: {error}", flush=True)
        os._exit(0 if what == "absent" else 3)
