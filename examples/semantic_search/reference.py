"""The same encoder on PyTorch, to compare with; the search itself never uses it."""

import json
import time

import encoder
import torch
import torch.nn.functional as F


def load(folder):
    """The weights by name, read with PyTorch."""
    data = bytearray((folder / "model.safetensors").read_bytes())
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            flat = torch.frombuffer(
                data, dtype=torch.float32, count=(last - first) // 4, offset=8 + length + first
            )
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def embed(weights, config, token_lists):
    """Embeds without fused attention: [sentence, 384], rows of length 1."""
    ids, mask = (torch.tensor(part) for part in encoder.pad(token_lists))

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def norm(x, name):
        parts = weights[name + ".weight"], weights[name + ".bias"]
        return F.layer_norm(x, (x.shape[-1],), *parts, eps=config["layer_norm_eps"])

    def heads(x):
        return x.unflatten(-1, (config["num_attention_heads"], -1)).transpose(1, 2)

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    hidden_from = mask[:, None, None, :] == 0
    for i in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{i}"
        q, k, v = (
            heads(linear(x, f"{name}.attention.self.{p}")) for p in ("query", "key", "value")
        )
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(
            hidden_from, float("-inf")
        )
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = norm(
            x + linear(mixed, f"{name}.attention.output.dense"),
            f"{name}.attention.output.LayerNorm",
        )
        wide = F.gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(x + linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    kept = mask[:, :, None].to(x.dtype)
    return F.normalize((x * kept).sum(1) / kept.sum(1), dim=-1)


def embed_all(folder, token_lists):
    """The embeddings of all sentences as lists, and the time in seconds."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = load(folder)
    rows = [None] * len(token_lists)
    with torch.no_grad():
        start = time.perf_counter()
        for batch in encoder.batches(token_lists):
            result = embed(weights, config, [token_lists[i] for i in batch])
            for i, row in zip(batch, result.tolist()):
                rows[i] = row
        return rows, time.perf_counter() - start
