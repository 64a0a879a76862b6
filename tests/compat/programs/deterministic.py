"""use_deterministic_algorithms(): new memory is filled, and some operators are refused."""

import warnings

import torch
from torch.nn import functional
from torch.utils import deterministic

warnings.simplefilter("ignore")


def fails(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "no error"


x, at, one = torch.ones(3), torch.tensor([0]), torch.ones(1)
places = torch.zeros(1, 1, 1, 1, dtype=torch.int64)
CALLS = {
    "put_": lambda: x.put_(at, one),
    "put": lambda: torch.put(x, at, one),
    "put method": lambda: x.put(at, one),
    "put_ sums": lambda: x.clone().put_(at, one, accumulate=True),
    "put_ sums by position": lambda: x.clone().put_(at, one, True),
    "unpooling 1d": lambda: functional.max_unpool1d(torch.ones(1, 1, 1), places[0], 2),
    "unpooling 2d": lambda: functional.max_unpool2d(torch.ones(1, 1, 1, 1), places, 2),
    "unpooling module": lambda: torch.nn.MaxUnpool2d(2)(torch.ones(1, 1, 1, 1), places),
    "index_add": lambda: x.clone().index_add_(0, at, one),
    "scatter": lambda: x.clone().scatter_(0, at, one),
}


def show():
    print(torch.empty(2), torch.empty(2, dtype=torch.int32), torch.empty(2, dtype=torch.bool))
    print(torch.empty(2, dtype=torch.uint8), torch.empty(2, dtype=torch.float16).isnan())
    print(torch.empty(2, dtype=torch.complex64).isnan(), torch.empty(0), torch.empty(2)._version)
    print(
        torch.empty_like(x), torch.empty_strided((2,), (2,)), torch.empty_permuted((2, 2), (1, 0))
    )
    print(x.new_empty(2), x.new_empty_strided((2,), (1,)), torch.Tensor(2), torch.FloatTensor(2))
    print(torch.ones(2).resize_(4), torch.ones(2, 2).resize_(3, 3), torch.ones(4).resize_(2))
    print(torch.empty(2, requires_grad=True).requires_grad, torch.empty(2, device="meta").shape)


torch.use_deterministic_algorithms(True)
show()
print({name: fails(call) for name, call in CALLS.items()})
torch.use_deterministic_algorithms(True, warn_only=True)
print({name: fails(call) for name, call in CALLS.items()}, torch.empty(2))
deterministic.fill_uninitialized_memory = False
print(torch.empty(2).shape, torch.zeros(2))
deterministic.fill_uninitialized_memory = True
torch.use_deterministic_algorithms(False)
print({name: fails(call) for name, call in CALLS.items()})
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.ones(3).put_(at, one)
    print(len(said), [w.category.__name__ for w in said])
torch.use_deterministic_algorithms(False)
torch.ones(3).put_(at, one)
