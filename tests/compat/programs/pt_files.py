"""State dicts and tensors through torch.save() and torch.load()."""

import io
import sys
from collections import OrderedDict

import torch
from torch import nn

DTYPES = (
    "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 "
    "uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
).split()


def make():
    torch.manual_seed(0)
    base = torch.arange(12.0).reshape(3, 4)
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.rand(5, 3)).square().mean(1).max().backward()
    optimizer.step()
    made = {
        "base": base,
        "view": base[1:, ::2],
        "row": base[0],
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "plain": (1, "a", None, True, 2.5, b"ab\xff", [{1, 2}], 3j),
        "dtype": torch.float16,
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "parameter": nn.Parameter(torch.ones(2)),
        "leaf": torch.ones(1, requires_grad=True),
        "conj": torch.tensor([1 + 2j]).conj(),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "ordered": OrderedDict(a=1),
        "sparse": torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)),
        "rows": torch.eye(3).to_sparse_csr(),
        "columns": torch.eye(4).to_sparse_csc(),
        "blocks": torch.eye(4).to_sparse_bsr((2, 2)),
        "layout": torch.sparse_coo,
        "meta": torch.ones(2, 3, device="meta"),
    }
    for name in DTYPES:
        made[name] = torch.arange(3).to(getattr(torch, name))
    return made


def show(value):
    if isinstance(value, torch.Tensor) and value.layout != torch.strided:
        return [show(value.layout), repr(value), value.to_dense().tolist()]
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).split(".")[1]
        plain = value.detach() if "float8" not in dtype else value.float()
        numbers = None if value.device.type == "meta" else plain.resolve_conj().tolist()
        geometry = (tuple(value.shape), value.stride(), value.requires_grad, value.is_conj())
        return [type(value).__name__, dtype, *geometry, numbers]
    if isinstance(value, dict):
        return {key: show(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [show(entry) for entry in value]
    return str(value).replace("lamella", "torch")


def main(what, path):
    if what == "write":
        torch.save(make(), path)
        return
    loaded = torch.load(path)
    pointers = [loaded[name].untyped_storage().data_ptr() for name in ("base", "view", "row")]
    assert len(set(pointers)) == 1
    for key, value in loaded.items():
        print(key, show(value))
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 4))
    print(model.load_state_dict(loaded["model"]), loaded["model"]._metadata["1"])
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(loaded["optimizer"])
    buffer = io.BytesIO()
    torch.save(loaded, buffer)
    buffer.seek(0)
    again = torch.load(buffer, map_location=lambda storage, location: storage)
    print(show(again) == show(loaded))


if len(sys.argv) > 1:
    main(*sys.argv[1:])
else:
    torch.save(make(), "here.pt")
    main("read", "here.pt")
