"""Checkpoints to which each rank writes a part, and which any number of ranks can read.

A checkpoint is a folder with a safetensors file for each rank and `index.json`, which is written
last; a folder without it is not a complete checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil

import lamella
import lamella.distributed as dist
from lamella import Tensor

__all__ = ["load", "save"]


def save(tensors: dict[str, Tensor], path: str, group: dist.ProcessGroup | None = None) -> None:
    """Writes tensors that are equal on all ranks; each rank writes a part of every tensor.

    The folder is renamed to `path` when the parts of all ranks are on the disk. An earlier
    checkpoint of that name is kept until then.
    """
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    draft = path + ".incomplete"
    if rank == 0:
        shutil.rmtree(draft, ignore_errors=True)
        os.makedirs(draft)
    dist.barrier(group)
    parts, index = {}, {}
    for name, tensor in tensors.items():
        flat = tensor.detach().contiguous().reshape(-1)
        index[name] = list(tensor.shape)
        parts[name] = flat[
            flat.numel() * rank // ranks : flat.numel() * (rank + 1) // ranks
        ].clone()
    file = os.path.join(draft, f"{rank}.safetensors")
    failure = ""
    try:
        lamella.save_file(parts, file)
        with open(file, "rb") as written:
            os.fsync(written.fileno())
    except (OSError, TypeError, ValueError) as error:
        failure = f"rank {rank}: {error}"
    failures: list[object] = [""] * ranks
    dist.all_gather_object(failures, failure, group)
    told = [str(one) for one in failures if one]
    if not told and rank == 0:
        with open(os.path.join(draft, "index.json"), "w", encoding="utf-8") as out:
            json.dump({"ranks": ranks, "tensors": index}, out)
            out.flush()
            os.fsync(out.fileno())
        before = path + ".before"
        shutil.rmtree(before, ignore_errors=True)
        if os.path.exists(path):
            os.rename(path, before)
        os.rename(draft, path)
        shutil.rmtree(before, ignore_errors=True)
    dist.barrier(group)
    if told:
        raise OSError("checkpoint.save: " + "; ".join(told))


def load(path: str) -> dict[str, Tensor]:
    """Reads all tensors of a checkpoint in full. Each rank reads by itself; their number may differ
    from that of the ranks that wrote it."""
    if not os.path.exists(os.path.join(path, "index.json")) and os.path.exists(path + ".before"):
        path = path + ".before"  # the writer was killed between its two renames
    with open(os.path.join(path, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    parts = [
        lamella.load_file(os.path.join(path, f"{rank}.safetensors"))
        for rank in range(index["ranks"])
    ]
    return {
        name: lamella.cat([part[name] for part in parts]).reshape(shape)
        for name, shape in index["tensors"].items()
    }
