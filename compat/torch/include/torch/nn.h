// torch::nn: modules, functional, init; TORCH_MODULE.
#pragma once
#include <torch/arg.h>
#include <torch/expanding_array.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

#include "lamella/nn/activations.h"
#include "lamella/nn/containers.h"
#include "lamella/nn/embeddings.h"
#include "lamella/nn/losses.h"
#include "lamella/nn/recurrent.h"
#include "lamella/nn/transformer.h"
#include "lamella/nn/windows.h"

#define FORWARD_HAS_DEFAULT_ARGS(...) LAMELLA_FORWARD_DEFAULTS(__VA_ARGS__)

namespace torch {
using namespace lamella::nn::words;
namespace enumtype {
using namespace lamella::nn::enumtype;
}
// Not an alias, so that code can add names of its own to it.
namespace nn {
using namespace lamella::nn;
}
}  // namespace torch

#define TORCH_MODULE(Name) LAMELLA_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, ImplType)                      \
  class Name : public ::lamella::nn::ModuleHolder<ImplType> {  \
   public:                                                     \
    using ::lamella::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;                    \
  }
