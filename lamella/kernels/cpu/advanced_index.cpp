// index.Tensor and index_put_: indexing by tensors, with NumPy's rules.
//
// Note [Advanced indexing]
//   A mask is replaced by index tensors of its nonzero positions, one per dimension, or by a single
//   one if the dimensions that it covers can be merged. Index tensors are broadcast together; their
//   common shape replaces the indexed dimensions if these are adjacent, and otherwise comes first.
//   A single index is used directly; several are combined into one byte offset into `self` for each
//   position, so that the copy does not depend on their number.
#include <algorithm>
#include <cstring>

#include "lamella/api/generated_kernels.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/fill.h"
#include "lamella/kernels/cpu/offset_loop.h"

namespace lamella::native {

namespace {

struct IndexPlan {
  Tensor self;                  // with the indexed dimensions made neighbours
  std::vector<Tensor> indices;  // broadcast, one for each indexed dimension
  size_t first = 0;             // first indexed dimension
  size_t count = 0;             // indexed dimensions
  Dims index_shape;
  Dims shape;  // of the result
};

bool is_mask(const Tensor& index) {
  return index.scalar_type() == kBool || index.scalar_type() == kByte;
}

// Returns one entry per dimension of self, undefined for dimensions without an index. Dimensions of
// self that one mask covers are merged if their strides allow it.
std::vector<Tensor> expand_masks(const char* op, Tensor& self, TensorList indices) {
  const Dims sizes(self.sizes());
  size_t at = 0;  // the dimension of self as it was given
  std::vector<Tensor> out;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      out.emplace_back();
      ++at;
      continue;
    }
    ScalarType dtype = index.scalar_type();
    LAMELLA_CHECK_INDEX(dtype == kLong || dtype == kInt || is_mask(index), op,
                        ": expected 'indices' to be int64, int32, uint8 or bool, got ", dtype);
    if (!is_mask(index)) {
      out.push_back(index);
      ++at;
      continue;
    }
    const auto covered = static_cast<size_t>(index.dim());
    for (size_t d = 0; d < covered; ++d) {
      LAMELLA_CHECK_INDEX(at + d < sizes.size() && index.sizes()[d] == sizes[at + d], op,
                          ": expected a mask to fit dimension ", at + d, " of ", sizes,
                          ", got one of ", index.sizes());
    }
    at += covered;
    if (covered == 0) {
      // A mask without dimensions adds one: it is handled by the caller.
      out.push_back(index);
      ++at;
      continue;
    }
    const size_t first = out.size();
    bool one = true;
    for (size_t d = first; d + 1 < first + covered; ++d) {
      one &= self.strides()[d] == self.strides()[d + 1] * self.sizes()[d + 1];
    }
    if (one && covered > 1) {
      Dims shape(self.sizes()), strides(self.strides());
      for (size_t d = 1; d < covered; ++d) {
        shape[first] *= shape[first + 1];
        strides[first] = strides[first + 1];
        shape.erase(first + 1);
        strides.erase(first + 1);
      }
      self = view_of(self, shape, strides, self.storage_offset());
    }
    Tensor positions = lamella::nonzero(one ? index.reshape({-1}) : index);
    for (int64_t d = 0; d < positions.size(1); ++d) out.push_back(positions.select(1, d));
  }
  return out;
}

bool can_broadcast(IntArrayRef a, IntArrayRef b) {
  for (size_t i = 1; i <= a.size() && i <= b.size(); ++i) {
    int64_t x = a[a.size() - i], y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

IndexPlan make_plan(const char* op, const Tensor& self, TensorList given) {
  LAMELLA_CHECK_INDEX(static_cast<int64_t>(given.size()) <= self.dim() || self.dim() == 0, op,
                      ": expected at most ", self.dim(), " 'indices' for a tensor of ",
                      self.sizes(), ", got ", given.size());
  IndexPlan plan;
  plan.self = self;
  // A mask without dimensions becomes a mask of one element over a new dimension of size 1.
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined() || !is_mask(given[i]) || given[i].dim() != 0) continue;
    std::vector<Tensor> rest(given.begin(), given.end());
    rest[i] = given[i].reshape({1});
    return make_plan(op, self.unsqueeze(static_cast<int64_t>(i)), rest);
  }
  std::vector<Tensor> indices = expand_masks(op, plan.self, given);
  LAMELLA_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= plan.self.dim(), op,
                      ": expected at most ", self.dim(), " indexed dimensions for a tensor of ",
                      self.sizes(), ", got ", indices.size());
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    LAMELLA_CHECK_INDEX(can_broadcast(plan.index_shape, index.sizes()), op,
                        ": expected 'indices' to be broadcastable together, got ", plan.index_shape,
                        " and ", index.sizes());
    plan.index_shape = broadcast_shapes(plan.index_shape, index.sizes(), op, "indices");
  }
  // Whether the indexed dimensions are adjacent.
  size_t last = 0;
  bool any = false, neighbours = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    if (!any) plan.first = d;
    neighbours &= !any || last + 1 == d;
    any = true;
    last = d;
    ++plan.count;
  }
  if (!neighbours) {
    Dims order;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].defined()) order.push_back(static_cast<int64_t>(d));
    }
    for (size_t d = 0; d < static_cast<size_t>(plan.self.dim()); ++d) {
      if (d >= indices.size() || !indices[d].defined()) order.push_back(static_cast<int64_t>(d));
    }
    plan.self = plan.self.permute(order);
    plan.first = 0;
  }
  for (const Tensor& index : indices) {
    if (index.defined()) plan.indices.push_back(index.expand(plan.index_shape));
  }
  IntArrayRef sizes = plan.self.sizes();
  plan.shape = Dims(sizes.slice(0, plan.first));
  plan.shape.append_all(plan.index_shape);
  plan.shape.append_all(sizes.slice(plan.first + plan.count));
  int64_t positions = product(plan.index_shape);
  for (size_t i = 0; i < plan.count; ++i) {
    LAMELLA_CHECK_INDEX(sizes[plan.first + i] != 0 || positions == 0, op,
                        ": expected no positions in a dimension of size 0, got ", positions);
  }
  return plan;
}

// Strides of self in the result's shape: 0 along the index dimensions.
Dims restrided_self(const IndexPlan& plan) {
  IntArrayRef strides = plan.self.strides();
  Dims out(strides.slice(0, plan.first));
  out.resize(out.size() + plan.index_shape.size(), 0);
  out.append_all(strides.slice(plan.first + plan.count));
  return out;
}
Places places_of(const char* op, const IndexPlan& plan, const Tensor& written) {
  std::vector<Places> parts;
  for (size_t i = 0; i < plan.count; ++i) {
    parts.push_back(places_along(op, plan.self, static_cast<int64_t>(plan.first + i),
                                 plan.indices[i], true, written));
  }
  // Without indices all of self is read: one place with offset 0.
  if (parts.empty()) return {lamella::zeros({}, kLong)};
  return sum_of(parts);
}
// Strides of the places, expanded to the result's shape.
Dims restrided_places(const IndexPlan& plan, const Places& places) {
  Dims out(plan.first, 0);
  out.append_all(places.index.strides());
  out.resize(plan.shape.size(), 0);
  return out;
}

void check_devices(const char* op, const Tensor& self, TensorList indices) {
  for (const Tensor& index : indices) {
    if (!index.defined()) continue;
    LAMELLA_CHECK(index.is_cpu() || index.device() == self.device(), op,
                  ": expected 'indices' on cpu or on ", self.device(), ", got one on ",
                  index.device());
    LAMELLA_CHECK_NOT_IMPLEMENTED(!index.is_meta() || !is_mask(index), op,
                                  ": expected masks in 'indices' to have data, which determines "
                                  "the result's shape, got a mask on meta");
  }
}

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  check_devices("index", self, indices);
  if (indices.size() == 1 && indices[0].defined() && indices[0].scalar_type() == kBool &&
      indices[0].dim() > 0 && indices[0].sizes().equals(self.sizes()) && self.is_cpu()) {
    return native::masked_select(self, indices[0]);
  }
  IndexPlan plan = make_plan("index", self, indices);
  Dims from = restrided_self(plan);
  // Strides of the index operands order the dimensions of the result after those of self.
  Dims at(plan.first, 0);
  at.append_all(contiguous_strides_of(plan.index_shape));
  at.resize(plan.shape.size(), 0);
  Dims order[2] = {from, at};
  Dims strides = dense_strides_like(plan.shape, order);
  Tensor result = new_strided(plan.shape, strides, self.scalar_type(), self.device());
  if (self.is_meta()) return result;
  Places places = places_of("index", plan, Tensor());
  if (result.numel() == 0) return result;
  StridedLoop<3> loop(plan.shape);
  loop.operand(0, result.data_ptr(), result.strides(), self.itemsize());
  loop.operand(1, plan.self.data_ptr(), from, self.itemsize());
  loop.operand(2, places.index.data_ptr(), restrided_places(plan, places), sizeof(int64_t));
  loop.plan();
  gather_elements(loop, self.itemsize(), places);
  return result;
}
Tensor _unsafe_index(const Tensor& self, TensorList indices) { return index(self, indices); }

Tensor& _index_put_impl_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate,
                         bool unsafe) {
  check_devices("index_put_", self, indices);
  LAMELLA_CHECK(values.scalar_type() == self.scalar_type(), "index_put_: expected 'values' to be ",
                self.scalar_type(), ", got ", values.scalar_type());
  if (accumulate || values.numel() != 1) {
    check_no_internal_overlap("index_put_", "self", self);
  } else {
    warn_of_shared_elements("index_put_", self);
  }
  check_no_overlap("index_put_", "self", self, "values", values);
  for (const Tensor& index : indices) {
    if (index.defined()) check_no_overlap("index_put_", "self", self, "indices", index);
  }
  IndexPlan plan = make_plan("index_put_", self, indices);
  LAMELLA_CHECK(is_expandable(values.sizes(), plan.shape),
                "index_put_: expected 'values' to be broadcastable to ", plan.shape, ", got ",
                values.sizes());
  if (self.is_meta()) return self;
  Places places = places_of("index_put_", plan, self);
  if (product(plan.shape) == 0) return self;
  Tensor from = may_share_memory(self, values) ? values.clone() : values;
  StridedLoop<3> loop(plan.shape);
  loop.operand(0, plan.self.data_ptr(), restrided_self(plan), self.itemsize());
  loop.operand(1, from.data_ptr(), broadcast_strides(from.sizes(), from.strides(), plan.shape),
               self.itemsize());
  loop.operand(2, places.index.data_ptr(), restrided_places(plan, places), sizeof(int64_t));
  loop.plan(true);
  scatter_elements("index_put_", loop, self.scalar_type(),
                   accumulate ? ScatterMode::kAdd : ScatterMode::kAssign, places);
  return self;
}
Tensor& index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  lamella::detail::SameDevice device_check("index_put_");
  device_check.see("self", self);
  device_check.see_indices("indices", indices);
  device_check.see_number("values", values);
  // Assigning one value through a mask needs no positions.
  if (!accumulate && values.numel() == 1 && indices.size() == 1 && indices[0].defined() &&
      indices[0].scalar_type() == kBool && values.scalar_type() == self.scalar_type() &&
      indices[0].dim() <= self.dim() && values.is_cpu() && self.is_cpu() &&
      indices[0].sizes().equals(self.sizes().slice(0, indices[0].sizes().size()))) {
    Tensor mask = indices[0];
    for (int64_t d = mask.dim(); d < self.dim(); ++d) mask = mask.unsqueeze(-1);
    return self.masked_fill_(mask, values.item());
  }
  return lamella::_index_put_impl_(self, indices, values, accumulate, false);
}
Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  Tensor result = self.clone(MemoryFormat::Preserve);
  result.index_put_(indices, values, accumulate);
  return result;
}

}  // namespace lamella::native
