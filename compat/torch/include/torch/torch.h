// All of torch:: that Lamella has.
#pragma once
#include <ATen/core/ivalue.h>
#include <torch/all.h>

// Python extensions built by a setup.py need not include torch/extension.h.
#ifdef TORCH_API_INCLUDE_EXTENSION_H
#include <torch/extension.h>
#endif
