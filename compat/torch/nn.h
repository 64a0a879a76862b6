// torch::nn: modules, functions, initial values; TORCH_MODULE.
#pragma once
#include <torch/types.h>

#include "lamella/nn.h"

namespace torch {
using namespace lamella::nn::words;
namespace nn {
using namespace lamella::nn;
namespace functional {
using namespace lamella::nn::functional;
}
namespace init {
using namespace lamella::nn::init;
}
namespace utils {
using namespace lamella::nn::utils;
}
}  // namespace nn
}  // namespace torch

#define TORCH_MODULE(Name) LAMELLA_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType)                      \
  class Name : public ::lamella::nn::ModuleHolder<ImplType> {  \
   public:                                                     \
    using ::lamella::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                    \
  }
