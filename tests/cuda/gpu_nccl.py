"""NCCL's collectives of one rank on the current stream and on another, for tools/gpu_check.sh."""

from __future__ import annotations

import sys

import lamella
import lamella.distributed as dist


def main() -> int:
    try:
        if not dist.is_nccl_available():
            print("NCCL was not found")
            return 0
        dist.init_process_group("nccl")
    except (ImportError, OSError, RuntimeError) as error:
        print(f"not run: {error}".splitlines()[0])
        return 0
    x = lamella.arange(1000.0)
    streams = [lamella.cuda.current_stream(), lamella.cuda.Stream()]
    for stream in streams:
        with lamella.cuda.stream(stream):
            y = x.cuda()
            for _ in range(10):
                y = y * 2
                dist.all_reduce(y)
        if y.cpu().tolist() != (x * 1024).tolist():
            print("all_reduce: the results differ")
            return 1
    print(f"all_reduce of one rank on {len(streams)} streams")
    return 0


if __name__ == "__main__":
    sys.exit(main())
