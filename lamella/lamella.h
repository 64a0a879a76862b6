// Everything a user of Lamella may include: tensors, all operators, gradients, the dispatcher,
// registration.
#pragma once
#include "lamella/api/dimension_calls.h"
#include "lamella/api/functions.h"
#include "lamella/api/tensor.h"
#include "lamella/autocast.h"
#include "lamella/autograd.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/layers/vmap/batch_rule.h"
#include "lamella/library.h"
