// at::TensorIterator, at::TensorIteratorConfig.
#pragma once
#include <ATen/TensorIterator.h>
