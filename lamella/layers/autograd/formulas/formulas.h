// All helper functions that formulas in ops/derivatives.yaml may call. Internal.
//
// A formula is a C++ expression over the operator's arguments and returns, the gradients, and the
// functions declared in the headers below. They only call operators, so that a backward can be
// differentiated itself. Undefined tensors: a helper may get one only where its comment says so.
#pragma once
#include "lamella/api/tensor_operators.h"
#include "lamella/layers/autograd/formulas/indexing.h"
#include "lamella/layers/autograd/formulas/linalg.h"
#include "lamella/layers/autograd/formulas/losses.h"
#include "lamella/layers/autograd/formulas/nn.h"
#include "lamella/layers/autograd/formulas/norms.h"
#include "lamella/layers/autograd/formulas/pointwise.h"
#include "lamella/layers/autograd/formulas/reduce.h"
#include "lamella/layers/autograd/formulas/views.h"
