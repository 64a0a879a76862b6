// An operator of bench/bridge.py whose argument has no stable form in PyTorch.
#include <lamella/lamella.h>

LAMELLA_LIBRARY(bridge_scalar, m) {
  m.def("scaled(Tensor x, Scalar by) -> Tensor",
        [](const lamella::Tensor& x, const lamella::Scalar& by) { return x * by; });
}
