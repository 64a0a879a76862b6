// The few operators that generated code calls directly, looked up by name.
#pragma once
#include "lamella/api/operator.h"
#include "lamella/core/memory_overlap.h"

namespace lamella::detail {

struct EmptyStridedEntry {
  static constexpr const char* texts = "aten::empty_strided\0\0";
};
using EmptyStrided =
    Operator<EmptyStridedEntry,
             Tensor(IntArrayRef, IntArrayRef, std::optional<ScalarType>, std::optional<Layout>,
                    std::optional<Device>, std::optional<bool>)>;
struct ResizeEntry {
  static constexpr const char* texts = "aten::resize_\0\0";
};
using Resize =
    Operator<ResizeEntry, const Tensor&(const Tensor&, IntArrayRef, std::optional<MemoryFormat>)>;
struct RestrideEntry {
  static constexpr const char* texts = "aten::as_strided_\0\0";
};
using Restride = Operator<RestrideEntry, const Tensor&(const Tensor&, IntArrayRef, IntArrayRef,
                                                       std::optional<int64_t>)>;
struct CopyEntry {
  static constexpr const char* texts = "aten::copy_\0\0";
};
using Copy = Operator<CopyEntry, Tensor&(Tensor&, const Tensor&, bool)>;
struct CloneEntry {
  static constexpr const char* texts = "aten::clone\0\0";
};
using Clone = Operator<CloneEntry, Tensor(const Tensor&, std::optional<MemoryFormat>)>;

// Resizes `out` to these sizes and strides; empty strides mean contiguous.
inline void resize_out(const Tensor& out, IntArrayRef sizes, IntArrayRef strides) {
  Resize::call(out, sizes, std::nullopt);
  if (!strides.empty()) Restride::call(out, sizes, strides, std::nullopt);
}

// Throws if two outputs of an operator share memory.
template <class... T>
void check_outputs_apart(const char* op, const char* const* names, const T&... outs) {
  const TensorBase* all[] = {&outs...};
  for (size_t i = 1; i < sizeof...(T); ++i) {
    for (size_t j = 0; j < i && all[i]->defined(); ++j) {
      if (all[j]->defined()) check_no_overlap(op, names[i], *all[i], names[j], *all[j]);
    }
  }
}

// Index -1 means the current device, so it matches any index.
inline bool same_device(Device a, Device b) {
  return a.type() == b.type() && (a.index() == b.index() || a.index() < 0 || b.index() < 0);
}

}  // namespace lamella::detail
