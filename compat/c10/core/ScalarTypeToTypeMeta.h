// caffe2::TypeMeta: a ScalarType here.
#pragma once
#include <c10/core/ScalarType.h>

namespace caffe2 {
using TypeMeta = lamella::ScalarType;
}
namespace c10 {
constexpr lamella::ScalarType typeMetaToScalarType(lamella::ScalarType type) { return type; }
constexpr lamella::ScalarType scalarTypeToTypeMeta(lamella::ScalarType type) { return type; }
}  // namespace c10
