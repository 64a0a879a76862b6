// The few operators that generated code calls itself, found by name.
#pragma once
#include "lamella/api/operator.h"

namespace lamella::detail {

struct EmptyStrided
    : Operator<EmptyStrided, Tensor(IntArrayRef, IntArrayRef, std::optional<ScalarType>,
                                    std::optional<Layout>, std::optional<Device>,
                                    std::optional<bool>)> {
  static constexpr const char* name = "aten::empty_strided";
  static constexpr const char* overload_name = "";
};
struct Resize : Operator<Resize, const Tensor&(const Tensor&, IntArrayRef,
                                               std::optional<MemoryFormat>)> {
  static constexpr const char* name = "aten::resize_";
  static constexpr const char* overload_name = "";
};
struct Restride : Operator<Restride, const Tensor&(const Tensor&, IntArrayRef, IntArrayRef,
                                                   std::optional<int64_t>)> {
  static constexpr const char* name = "aten::as_strided_";
  static constexpr const char* overload_name = "";
};
struct Copy : Operator<Copy, Tensor&(Tensor&, const Tensor&, bool)> {
  static constexpr const char* name = "aten::copy_";
  static constexpr const char* overload_name = "";
};
struct Clone : Operator<Clone, Tensor(const Tensor&, std::optional<MemoryFormat>)> {
  static constexpr const char* name = "aten::clone";
  static constexpr const char* overload_name = "";
};

// Gives `out` these sizes; empty strides mean contiguous.
inline void resize_out(const Tensor& out, IntArrayRef sizes, IntArrayRef strides) {
  Resize::call(out, sizes, std::nullopt);
  if (!strides.empty()) Restride::call(out, sizes, strides, std::nullopt);
}

// Index -1 means the current device, which any index may be.
inline bool same_device(Device a, Device b) {
  return a.type() == b.type() && (a.index() == b.index() || a.index() < 0 || b.index() < 0);
}

}  // namespace lamella::detail
