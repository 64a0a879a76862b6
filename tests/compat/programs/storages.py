"""Typed and untyped storages, and shared memory."""

import os
import tempfile

import torch
import torch.multiprocessing as mp
from torch import nn


def main():
    x = torch.arange(6, dtype=torch.float32)
    typed = x[2:].storage()
    print(type(typed).__name__, typed, typed.dtype, typed.type(), len(typed), typed.size())
    print(isinstance(typed, torch.FloatStorage), isinstance(typed, torch.LongStorage))
    print(typed.nbytes(), typed.element_size(), typed[1], list(typed), typed.tolist())
    typed[1] = 9
    print(x, typed.data_ptr() == x.data_ptr(), typed._cdata == x.view(2, 3).storage()._cdata)
    print(typed.double().tolist(), typed.long().type(), typed.clone().fill_(2).tolist())
    print(torch.FloatStorage([1, 2]).copy_(torch.FloatStorage([3, 4])).tolist())
    print(torch.FloatStorage(3).size(), torch.BoolStorage([True, False]).tolist())
    print(torch.TypedStorage([1, 2], dtype=torch.int16), torch.TypedStorage(4).dtype)
    print(torch.ByteStorage.from_buffer(b"abc").tolist())
    print(torch.IntStorage.from_buffer(bytes(range(8)), "big").tolist())
    print(torch.ByteTensor(torch.ByteStorage.from_buffer(b"xyz")))
    print(x.new(typed).shape, torch.tensor([]).set_(typed).shape, x.new([1, 2]), x.new(2, 3).shape)

    raw = x.untyped_storage()
    print(len(raw), raw.nbytes(), raw.element_size(), raw[4], raw[4:8].tolist())
    print(x, raw.clone().fill_(1).tolist()[:3], torch.UntypedStorage([1, 2, 300 % 256]).tolist())
    print(torch.is_storage(raw), torch.is_storage(typed), raw.device, raw.cpu() is raw)

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "numbers")
        shared = torch.from_file(path, True, 4, dtype=torch.int32)
        shared.copy_(torch.arange(4))
        print(torch.from_file(path, False, 4, dtype=torch.int32))
        kept = torch.FloatStorage.from_file(path, True, 4)
        kept[0] = 1
        print(shared[0].item(), torch.from_file(path, size=4, dtype=torch.int32)[0].item())


def train(model, times):
    for _ in range(times):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 1
    model.steps += times


def add(queue, value):
    value += 1
    queue.put(value.is_shared())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(2, 1)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))


if __name__ == "__main__":
    main()
    net = Net()
    nn.init.zeros_(net.line.weight)
    nn.init.zeros_(net.line.bias)
    print(net.line.weight.is_shared(), net.share_memory() is net, net.line.weight.is_shared())
    print(isinstance(net.line.weight, nn.Parameter), net.line.weight.requires_grad)
    for method in ("fork", "spawn"):
        worker = mp.get_context(method).Process(target=train, args=(net, 3))
        worker.start()
        worker.join()
        print(net.line.weight.tolist(), net.line.bias.tolist(), net.steps.item())
    value = torch.zeros(4)
    part = value.share_memory_()[1:3]
    queue = mp.get_context("spawn").Queue()
    worker = mp.get_context("spawn").Process(target=add, args=(queue, part))
    worker.start()
    print(queue.get(), worker.join(), value, value.clone().is_shared(), part.is_shared())
