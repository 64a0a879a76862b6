// Everything of torch:: that Lamella has.
#pragma once
#include <torch/all.h>

// Extensions for Python that are built by their setup.py may leave torch/extension.h out.
#ifdef TORCH_API_INCLUDE_EXTENSION_H
#include <torch/extension.h>
#endif
