// XLA's and TensorFlow's names for errors and for the macros that return them.
#pragma once
#include "xla/lamella_names.h"

namespace tensorflow {
using lamella::hlo::Status;
}  // namespace tensorflow
namespace tsl {
using lamella::hlo::Status;
using lamella::hlo::StatusOr;
}  // namespace tsl

#define TF_RETURN_IF_ERROR(...) LAMELLA_RETURN_IF_ERROR(__VA_ARGS__)
#define TF_ASSIGN_OR_RETURN(target, ...) LAMELLA_ASSIGN_OR_RETURN(target, __VA_ARGS__)
#define TF_CHECK_OK(status) (status).check()
