// All of torch:: that Lamella has, and the standard headers that code includes through PyTorch's.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <ATen/core/Dict.h>
#include <ATen/core/op_registration/op_registration.h>
#include <c10/util/Logging.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/fft.h>
#include <torch/library.h>
#include <torch/linalg.h>
#include <torch/special.h>
#include <torch/standard_headers.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

// The networks take a fifth of the compile time of this header; code that only defines operators
// can leave them out.
#ifndef LAMELLA_WITHOUT_NETWORKS
#include <torch/data.h>
#include <torch/nn.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#endif
