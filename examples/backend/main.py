"""A tour of the devices of the example's library: python main.py FOLDER_OF_THE_LIBRARY"""

import os
import sys

import lamella

lamella.load_library(os.path.join(sys.argv[1], "libsim.so"))
lamella.utils.generate_methods_for_privateuse1_backend()

print(f"{lamella.sim.device_count()} devices, the current one is {lamella.sim.current_device()}")

x = lamella.tensor([[1.0, -2.0], [3.0, -4.0]]).to("sim")
print(x.relu() @ x)  # the devices' own kernels
print(x.softmax(1))  # by the fallback

row = x[1]  # a view of the device's memory
row.add_(10)
print(x)

y = x.sim(1)
print(y.device, y.is_sim, lamella.equal(y.cpu(), x.cpu()))

w = lamella.ones(2, 2, device="sim", requires_grad=True)
((x @ w).relu() ** 2).sum().backward()
print(w.grad)

stream = lamella.sim.Stream()
with stream:
    z = x * 2
done = stream.record_event()
done.synchronize()
print(z.sum().item())

try:
    x + lamella.ones(2, 2)
except RuntimeError as error:
    print(error)
