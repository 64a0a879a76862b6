// torch::autograd::Node.
#pragma once
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>

namespace torch::autograd {
using Node = lamella::autograd::GraphNode;
}
