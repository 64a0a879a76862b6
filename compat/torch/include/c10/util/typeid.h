// caffe2::TypeMeta, the type of Tensor::dtype().
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/type_meta.h"

namespace caffe2 {
using lamella::TypeMeta;
using TypeIdentifier = lamella::ScalarType;
}  // namespace caffe2
