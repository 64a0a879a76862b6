// torch::data: data sets, samplers, transforms, loaders.
#pragma once
#include <torch/types.h>

#include "lamella/nn/data/datasets.h"
#include "lamella/nn/data/loader.h"
#include "lamella/nn/data/samplers.h"
#include "lamella/nn/data/transforms.h"

namespace torch {
namespace data = lamella::data;
}
