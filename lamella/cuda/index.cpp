// Indexing by tensors: gather, scatter and its reductions, index_select, index_add, index_copy,
// index_fill_, take, put_, index, index_put_, the backward of embedding.
#include "lamella/cuda/index.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "lamella/kernels/dims.h"

namespace lamella::cuda {
namespace {

std::atomic<bool> deterministic{[] {
  const char* given = std::getenv("LAMELLA_CUDA_DETERMINISTIC");
  return given != nullptr && std::strcmp(given, "1") == 0;
}()};

template <int K>
bool describe(const Indexing& p, IndexParameters<K>* to) {
  Few<Strided, 2 + K> operands{p.beside, p.base};
  for (const IndexOperand& index : p.indices) {
    operands.push_back(Strided(index.index.data_ptr(), index.strides,
                               static_cast<int64_t>(index.index.itemsize())));
  }
  if (!lay(&to->walk, p.sizes, operands)) return false;
  to->count = static_cast<int32_t>(p.indices.size());
  for (size_t k = 0; k < p.indices.size(); ++k) {
    const IndexOperand& from = p.indices[k];
    const IndexSlot slot =
        report_slot(p.device, p.op, p.text, from.wraps ? -from.size : 0, from.size);
    to->any = slot.any;
    to->axes[k] = {from.size,          from.stride * static_cast<int64_t>(element_size(p.dtype)),
                   p.skip.value_or(0), from.index.scalar_type() == kLong ? 1 : 0,
                   from.wraps ? 1 : 0, p.skip ? 1 : 0,
                   slot.slot};
  }
  return true;
}
// The bytes of the widest elements as which runs beside the indices can be moved: their own, or up
// to 16 where all is aligned. The walk is changed to such elements.
template <int K>
size_t widen(IndexParameters<K>* p, size_t bytes) {
  auto& walk = p->walk;
  bool runs = walk.ndim > 0;
  for (int k = 0; k < 2 + p->count && runs; ++k) {
    runs = walk.strides[k][0] == (k < 2 ? static_cast<int64_t>(bytes) : 0);
  }
  if (!runs) return bytes;
  uint64_t all = walk.data[0] | walk.data[1] | static_cast<uint64_t>(walk.sizes[0]) * bytes;
  for (int k = 0; k < 2; ++k) {
    for (int d = 1; d < walk.ndim; ++d) all |= static_cast<uint64_t>(walk.strides[k][d]);
  }
  for (int k = 0; k < p->count; ++k) all |= static_cast<uint64_t>(p->axes[k].stride);
  size_t wide = 16;
  while (wide > bytes && all % wide != 0) wide /= 2;
  if (wide <= bytes) return bytes;
  const auto each = static_cast<int64_t>(wide / bytes);
  walk.sizes[0] /= each;
  walk.numel /= each;
  walk.strides[0][0] = walk.strides[1][0] = static_cast<int64_t>(wide);
  return wide;
}
// Launches name_one or name_many, for elements that are only moved with `moves`.
template <int K>
bool launch_as(const Indexing& p, const char* name, const char* suffix, Combine how, bool moves) {
  IndexParameters<K> q{};
  q.how = how;
  if (!describe(p, &q)) return false;
  if (moves) suffix = suffix_of_bytes(widen(&q, element_size(p.dtype)));
  return launch_named(p.device, name, suffix, &q, q.walk.numel);
}
bool launch_indexing(const Indexing& p, const char* one, const char* many, const char* suffix,
                     Combine how, bool moves = false) {
  if (suffix == nullptr || p.indices.size() > kMostIndices) return false;
  return p.indices.size() == 1 ? launch_as<1>(p, one, suffix, how, moves)
                               : launch_as<kMostIndices>(p, many, suffix, how, moves);
}

// Note [Sums in order] in kernels/index.h.
bool run_in_order(const Indexing& p, bool assigns, Combine how, const char* suffix) {
  int64_t numel = 1;
  for (int64_t size : p.sizes) numel *= size;
  if (numel == 0) return true;
  const Device device(DeviceType::CUDA, static_cast<DeviceIndex>(p.device));
  Tensor places = lamella::empty(p.sizes, TensorOptions(kLong).device(device));
  Indexing q = p;
  q.beside = Strided(places);
  if (!launch_indexing(q, "places_one", "places_many", "", how)) return false;
  auto [sorted, order] = lamella::sort(places.reshape({-1}), true, 0, false);
  RunsParameters r{};
  r.numel = numel;
  r.places = reinterpret_cast<uint64_t>(sorted.data_ptr());
  r.order = reinterpret_cast<uint64_t>(order.data_ptr());
  r.to = reinterpret_cast<uint64_t>(p.base.data);
  r.assigns = assigns ? 1 : 0;
  r.how = how;
  return lay(&r.values, p.sizes, {p.beside}) &&
         launch_named(p.device, "combine_runs", suffix, &r, numel);
}

}  // namespace

bool is_deterministic() { return deterministic.load(std::memory_order_relaxed); }
void set_deterministic(bool value) { deterministic.store(value); }

bool run_gather(const Indexing& p) {
  return launch_indexing(p, "gather_one", "gather_many", suffix_of_bytes(element_size(p.dtype)),
                         kCombineAdd, true);
}
bool run_scatter(const Indexing& p) {
  if (is_deterministic() && suffix_of_type(p.dtype) != nullptr) {
    return run_in_order(p, true, kCombineAdd, suffix_of_type(p.dtype));
  }
  return launch_indexing(p, "scatter_one", "scatter_many", suffix_of_bytes(element_size(p.dtype)),
                         kCombineAdd, true);
}
bool run_combine(Indexing p, Combine how) {
  Sizes beside(p.beside.strides.begin(), p.beside.strides.end());
  Sizes base(p.base.strides.begin(), p.base.strides.end());
  if (is_complex(p.dtype)) {
    // Sums are those of real and imaginary parts.
    if (how != kCombineAdd || p.dtype == kComplexHalf) return false;
    p.dtype = p.dtype == kComplexFloat ? kFloat : kDouble;
    p.sizes.push_back(2);
    for (Sizes* strides : {&beside, &base}) {
      for (int64_t& stride : *strides) stride *= 2;
      strides->push_back(1);
    }
    for (IndexOperand& index : p.indices) {
      index.stride *= 2;
      index.strides.push_back(0);
    }
    p.beside = Strided(p.beside.data, beside, p.beside.bytes / 2);
    p.base = Strided(p.base.data, base, p.base.bytes / 2);
  }
  const char* suffix = suffix_of_type(p.dtype);
  if (suffix == nullptr) return false;
  if (is_deterministic() && is_floating_point(p.dtype)) return run_in_order(p, false, how, suffix);
  return launch_indexing(p, "combine_one", "combine_many", suffix, how);
}

namespace {

enum class Action { kGather, kAssign, kAdd, kMultiply, kMaximum, kMinimum };
bool run(const Indexing& p, Action action) {
  switch (action) {
    case Action::kGather:
      return run_gather(p);
    case Action::kAssign:
      return run_scatter(p);
    default:
      return run_combine(
          p, static_cast<Combine>(static_cast<int>(action) - static_cast<int>(Action::kAdd)));
  }
}

int64_t size_along(const Tensor& t, int64_t dim) { return t.dim() == 0 ? 1 : t.size(dim); }
int64_t stride_along(const Tensor& t, int64_t dim) { return t.dim() == 0 ? 1 : t.stride(dim); }
int64_t wrapped(int64_t dim, const Tensor& t) {
  return dim < 0 ? dim + (t.dim() == 0 ? 1 : t.dim()) : dim;
}
// The strides of `t` in `rank` dimensions, 0 along the first `dim`.
Sizes strides_beside(const Tensor& t, int64_t dim, size_t rank) {
  Sizes strides(t.strides());
  strides.resize(rank, 0);
  if (!strides.empty() && dim >= 0) strides[static_cast<size_t>(dim)] = 0;
  return strides;
}

// What a call moves: `sizes` are those of the walk, `from` and `to` the strides of `beside` and of
// `base` there, which must live on.
Indexing indexing(const char* op, int device, IntArrayRef sizes, const Tensor& beside,
                  const Sizes& from, const Tensor& base, const Sizes& to,
                  std::initializer_list<IndexOperand> indices) {
  const auto bytes = static_cast<int64_t>(base.itemsize());
  return {op,
          device,
          base.scalar_type(),
          Sizes(sizes),
          Strided(beside.data_ptr(), from, bytes),
          Strided(base.data_ptr(), to, bytes),
          indices};
}
// Elements one by one: `index` has the shape of what lies beside, or that is one number.
bool along_elements(const char* op, const Call& call, int64_t dim, const Tensor& base,
                    const Tensor& index, const Tensor& beside, Action action) {
  if (index.numel() == 0) return true;
  const size_t rank = index.sizes().size();
  if (rank >= kMostDims) return false;
  dim = wrapped(dim, base);
  Sizes from(beside.strides());
  from.resize(rank, 0);
  const Sizes to = strides_beside(base, dim, rank);
  return run(indexing(op, call.device(), index.sizes(), beside, from, base, to,
                      {{index, Sizes(index.strides()), size_along(base, dim),
                        stride_along(base, dim), false}}),
             action);
}
// Slices along a dimension: `index` is a list. `beside` has the slices, or is one number.
bool along_slices(const char* op, int device, int64_t dim, const Tensor& base, const Tensor& index,
                  const Tensor& beside, bool wraps, Action action) {
  if (base.sizes().size() >= kMostDims) return false;
  dim = wrapped(dim, base);
  Sizes sizes(base.sizes());
  if (sizes.empty()) sizes.push_back(1);
  const auto d = static_cast<size_t>(dim);
  sizes[d] = index.numel();
  Sizes from(beside.strides());
  if (from.size() < sizes.size()) from.push_front(sizes.size() - from.size(), 0);
  const Sizes to = strides_beside(base, dim, sizes.size());
  Sizes at(sizes.size(), 0);
  at[d] = index.dim() == 0 ? 0 : index.stride(0);
  return run(indexing(op, device, sizes, beside, from, base, to,
                      {{index, at, size_along(base, dim), stride_along(base, dim), wraps}}),
             action);
}

Tensor number_on(const Call& call, const Scalar& value, ScalarType dtype) {
  const Device device(DeviceType::CUDA, static_cast<DeviceIndex>(call.device()));
  return lamella::full({}, value, TensorOptions(dtype).device(device));
}

// ---- gather, index_select, take ----

bool gather_body(Call& call) {
  return along_elements("gather", call, call.integer(1), call.tensor(0), call.tensor(2),
                        call.output(), Action::kGather);
}
bool index_select_body(Call& call) {
  return along_slices("index_select", call.device(), call.integer(1), call.tensor(0),
                      call.tensor(2), call.output(), false, Action::kGather);
}
// Elements of a tensor as if it were flat.
bool flat_elements(const char* op, const Call& call, const Tensor& flat, const Tensor& index,
                   const Tensor& beside, Action action) {
  if (index.sizes().size() >= kMostDims) return false;
  const Sizes zeros(index.sizes().size(), 0);
  return run(indexing(op, call.device(), index.sizes(), beside, Sizes(beside.strides()), flat,
                      zeros, {{index, Sizes(index.strides()), flat.numel(), 1, true}}),
             action);
}
bool take_body(Call& call) {
  return flat_elements("take", call, call.tensor(0).contiguous(), call.tensor(1), call.output(),
                       Action::kGather);
}
bool put_body(Call& call) {
  const Tensor self = call.output(), flat = self.contiguous(), index = call.tensor(1);
  const Tensor values = call.tensor(2).reshape(index.sizes());
  if (!flat_elements("put_", call, flat, index, values,
                     call.flag(3) ? Action::kAdd : Action::kAssign)) {
    return false;
  }
  if (!flat.is_same(self)) Tensor(self).copy_(flat);
  return true;
}

// ---- scatter and its reductions ----

bool serves(ScalarType dtype, Action action) {
  if (action == Action::kGather || action == Action::kAssign) {
    return suffix_of_bytes(element_size(dtype)) != nullptr;
  }
  const bool sums = action == Action::kAdd && (dtype == kComplexFloat || dtype == kComplexDouble);
  return sums || suffix_of_type(dtype) != nullptr;
}
Action action_of(std::string_view reduce) {
  if (reduce == "multiply" || reduce == "prod") return Action::kMultiply;
  if (reduce == "amax") return Action::kMaximum;
  return reduce == "amin" ? Action::kMinimum : Action::kAdd;
}
// The argument that is written: a tensor, or a number.
Tensor written(const Call& call) {
  return call.is_tensor(3) ? call.tensor(3)
                           : number_on(call, call.scalar(3), call.output().scalar_type());
}
bool scatter(Call& call, const char* op, Action action) {
  const Tensor out = call.output();
  if (!serves(out.scalar_type(), action)) return false;
  const Tensor src = written(call);
  call.start_from(call.tensor(0));
  return along_elements(op, call, call.integer(1), out, call.tensor(2), src, action);
}
bool scatter_body(Call& call) { return scatter(call, "scatter", Action::kAssign); }
bool scatter_reducing_body(Call& call) { return scatter(call, "scatter", action_of(call.text(4))); }
bool scatter_add_body(Call& call) { return scatter(call, "scatter_add", Action::kAdd); }

// What a written place starts from if its own value is excluded.
Scalar neutral_value(Action action, ScalarType dtype) {
  if (action == Action::kMultiply) return Scalar(1);
  if (action != Action::kMaximum && action != Action::kMinimum) return Scalar(0);
  const bool most = action == Action::kMinimum;
  if (!is_integral(dtype, true)) return Scalar(most ? HUGE_VAL : -HUGE_VAL);
  if (dtype == ScalarType::Bool) return Scalar(most);
  if (dtype == kByte) return Scalar(most ? int64_t{255} : int64_t{0});
  const int bits = static_cast<int>(element_size(dtype)) * 8;
  const auto top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return Scalar(most ? top : -top - 1);
}
bool scatter_reduce_body(Call& call) {
  const char* op = "scatter_reduce";
  const Tensor index = call.tensor(2), out = call.output();
  const Action action = action_of(call.text(4));
  const bool include_self = call.flag(5);
  const ScalarType dtype = out.scalar_type();
  if (!serves(dtype, action) || !serves(dtype, Action::kAssign)) return false;
  const int64_t dim = call.integer(1);
  auto write = [&](const Tensor& to, const Scalar& value, Action how) {
    return along_elements(op, call, dim, to, index, number_on(call, value, dtype), how);
  };
  call.start_from(call.tensor(0));
  if (!include_self && !write(out, neutral_value(action, dtype), Action::kAssign)) return false;
  along_elements(op, call, dim, out, index, call.tensor(3), action);
  if (call.text(4) != "mean") return true;
  Tensor count = include_self ? lamella::ones_like(out) : lamella::zeros_like(out);
  write(count, Scalar(1), Action::kAdd);
  count.masked_fill_(count.eq(0), 1);
  if (is_integral(dtype, true)) {
    Tensor(out).div_(count, "floor");
  } else {
    Tensor(out).div_(count);
  }
  return true;
}

// ---- index_add, index_copy, index_fill_ ----

bool index_add_body(Call& call) {
  const Tensor out = call.output();
  Tensor source = call.tensor(3);
  if (!serves(out.scalar_type(), Action::kAdd)) return false;
  const Scalar alpha = call.scalar(4);
  if (!alpha.equal(1)) source = source.mul(lamella::scalar_tensor(alpha, source.scalar_type()));
  call.start_from(call.tensor(0));
  return along_slices("index_add", call.device(), call.integer(1), out, call.tensor(2), source,
                      false, Action::kAdd);
}
bool index_copy_body(Call& call) {
  if (!serves(call.output().scalar_type(), Action::kAssign)) return false;
  call.start_from(call.tensor(0));
  return along_slices("index_copy", call.device(), call.integer(1), call.output(), call.tensor(2),
                      call.tensor(3), true, Action::kAssign);
}
bool index_fill_body(Call& call) {
  const Tensor out = call.output();
  const bool loses = call.is_tensor(3) && is_complex(call.tensor(3).scalar_type()) &&
                     !is_complex(out.scalar_type());
  if (loses || !serves(out.scalar_type(), Action::kAssign)) return false;
  Tensor value = written(call);
  if (value.scalar_type() != out.scalar_type()) value = value.to(out.scalar_type());
  return along_slices("index_fill_", call.device(), call.integer(1), out, call.tensor(2), value,
                      true, Action::kAssign);
}

// ---- index and index_put_ ----

bool is_mask(const Tensor& t) {
  return t.defined() && (t.scalar_type() == ScalarType::Bool || t.scalar_type() == kByte);
}
// Replaces masks by the positions of their elements that are set, which waits for the device. A
// mask without dimensions, which adds one, is left.
bool expand_masks(const char* op, const Tensor& self, std::vector<Tensor>* indices) {
  std::vector<Tensor> found;
  for (const Tensor& index : *indices) {
    if (!is_mask(index)) {
      found.push_back(index);
      continue;
    }
    if (index.dim() == 0) return false;
    for (int64_t d = 0; d < index.dim(); ++d) {
      const auto at = static_cast<int64_t>(found.size()) + d;
      LAMELLA_CHECK_INDEX(at < self.dim() && index.size(d) == self.size(at), op,
                          ": expected a mask to fit dimension ", at, " of ", self.sizes(),
                          ", got one of ", index.sizes());
    }
    const Tensor positions = lamella::nonzero(index);
    for (int64_t d = 0; d < positions.size(1); ++d) found.push_back(positions.select(1, d));
  }
  *indices = found;
  return true;
}

// The walk of a call whose indices are integers: `beside` in the shape of the result.
bool index_by_tensors(const char* op, const Call& call, const Tensor& self, const Tensor& beside,
                      Action action) {
  native::Dims shape;  // that the indices are broadcast to
  Few<size_t, kMostIndices> which;
  Few<Tensor, kMostIndices> indices;  // those that are defined
  for (size_t d = 0; d < call.count(1); ++d) {
    const Tensor index = call.tensor_of(1, d);
    if (!index.defined()) continue;
    if (which.size() == kMostIndices || index.sizes().size() + self.sizes().size() > kMostDims) {
      return false;
    }
    which.push_back(d);
    indices.push_back(index);
    shape = native::broadcast_shapes(shape, index.sizes(), op, "indices");
  }
  if (which.empty()) return false;
  const bool adjacent = which.back() - which.front() + 1 == which.size();
  const size_t first = adjacent ? which.front() : 0;
  Sizes sizes, base;  // of the result; strides of self there
  auto add_dim = [&](size_t d) {
    sizes.push_back(self.sizes()[d]);
    base.push_back(self.strides()[d]);
  };
  for (size_t d = 0; d < first; ++d) add_dim(d);
  sizes.append(shape);
  base.resize(sizes.size(), 0);
  for (size_t d = first; d < self.sizes().size(); ++d) {
    if (std::find(which.begin(), which.end(), d) == which.end()) add_dim(d);
  }
  const Sizes from = broadcast_strides(beside, sizes, sizes.size());
  Indexing p = indexing(op, call.device(), sizes, beside, from, self, base, {});
  for (size_t k = 0; k < which.size(); ++k) {
    Sizes strides = broadcast_strides(indices[k], shape, first + shape.size());
    strides.resize(sizes.size(), 0);
    const size_t d = which[k];
    p.indices.push_back({indices[k], strides, self.sizes()[d], self.strides()[d], true});
  }
  return run(p, action);
}
bool index_body(Call& call) {
  return index_by_tensors("index", call, call.tensor(0), call.output(), Action::kGather);
}
bool index_put_body(Call& call) {
  const Tensor self = call.output(), values = call.tensor(2);
  const Action action = call.flag(3) ? Action::kAdd : Action::kAssign;
  if (!serves(self.scalar_type(), action)) return false;
  return index_by_tensors("index_put_", call, self, values, action);
}
// Assigns one value through a mask, which needs no positions and so no wait. False: it is another
// assignment.
bool assign_by_mask(const Call& call, const Tensor& self, const std::vector<Tensor>& indices) {
  const Tensor values = call.tensor(2);
  if (call.flag(3) || values.numel() != 1 || indices.size() != 1) return false;
  Tensor mask = indices[0];
  if (!mask.defined() || mask.scalar_type() != ScalarType::Bool || mask.dim() == 0 ||
      mask.dim() > self.dim() || values.scalar_type() != self.scalar_type()) {
    return false;
  }
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (mask.size(d) != self.size(d)) return false;
  }
  while (mask.dim() < self.dim()) mask = mask.unsqueeze(-1);
  Tensor(self).masked_fill_(mask, values.reshape({}));
  return true;
}
// Whether a list has indices of the device that are integers, and nothing to be converted.
bool takes_integers(const lamella_value& list) {
  bool all = true;
  for (uint32_t k = 0; k < list.size; ++k) {
    const lamella_tensor* t = static_cast<lamella_tensor* const*>(list.as.pointer)[k];
    if (t == nullptr) continue;
    const auto dtype = static_cast<ScalarType>(t->scalar_type);
    all = all && t->device_type == static_cast<uint8_t>(DeviceType::CUDA) &&
          is_integral(dtype, false) && dtype != kByte;
  }
  return all;
}
// Masks and indices of the host become indices of the device; then the operator is called again.
template <CallBody body>
lamella_status boxed_index(const lamella_kernel* kernel, const lamella_operator* op,
                           uint64_t key_set, const lamella_value* arguments,
                           lamella_value* returns) noexcept {
  if (takes_integers(arguments[1]) && body == &index_body) {
    return run_call(body, Overlap::kRefused, kernel, op, key_set, arguments, returns);
  }
  std::vector<lamella_value> given(arguments, arguments + op->argument_count);
  IValue list;
  bool is_served = true, is_done = false;
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  const lamella_status status = lamella::detail::guarded([&] {
    const Call call(op, arguments);
    const Tensor self = call.tensor(0);
    std::vector<Tensor> indices = call.tensors(1);
    const char* name = body == &index_body ? "index" : "index_put_";
    bool changed = false;
    for (Tensor& index : indices) {
      if (!index.defined()) continue;
      if (index.is_cpu()) {
        index = index.to(self.device());
        changed = true;
      }
      changed = changed || is_mask(index);
    }
    if (!changed) return;
    is_done = body == &index_put_body && assign_by_mask(call, self, indices);
    if (is_done) {
      returns[0] = IValue(TensorBase(self)).unsafe_release();
      return;
    }
    is_served = expand_masks(name, self, &indices);
    list = IValue(ArrayRef<Tensor>(indices));
    if (is_served) given[1] = list.value();
  });
  if (status != LAMELLA_OK || is_done) return status;
  if (!is_served) return counting_fallback(kernel, op, key_set, arguments, returns);
  return run_call(body, Overlap::kRefused, kernel, op, key_set, given.data(), returns);
}

// ---- The backward of embedding ----

bool embedding_backward_body(Call& call) {
  const Tensor grad = call.tensor(0), indices = call.tensor(1), out = call.output();
  if (!serves(grad.scalar_type(), Action::kAdd)) return false;
  const ScalarType wide = grad.scalar_type() == kDouble ? kDouble : kFloat;
  Tensor rows = grad.to(wide).contiguous();
  const Tensor at = indices.contiguous();
  Tensor sums = out.scalar_type() == wide ? out : lamella::empty_like(out, TensorOptions(wide));
  sums.zero_();
  if (call.flag(4) && indices.numel() != 0) {  // each row counts as one of its index's uses
    const Tensor list = at.reshape({-1});
    Tensor uses = lamella::zeros({out.size(0)}, rows.options());
    uses.index_add_(0, list, lamella::ones({1}, rows.options()).expand({list.numel()}));
    const Tensor share = uses.reciprocal().index_select(0, list).unsqueeze(1);
    rows = rows.reshape({-1, out.size(1)}).mul(share);
  }
  const int64_t count = indices.numel(), width = out.size(1);
  const Sizes beside{width, 1}, base{0, 1};
  Indexing p = indexing("embedding_dense_backward", call.device(), {count, width}, rows, beside,
                        sums, base, {{at, {1, 0}, out.size(0), width, false}});
  p.text = IndexText::kElements;
  p.skip = call.integer(3);
  if (!run_combine(p, kCombineAdd)) return false;
  if (!sums.is_same(out)) Tensor(out).copy_(sums);
  return true;
}

}  // namespace

void register_index(Library& aten) {
  register_calls<&gather_body, Overlap::kRefused>(aten, "gather gather.out");
  register_calls<&index_select_body, Overlap::kRefused>(aten, "index_select index_select.out");
  register_calls<&take_body, Overlap::kRefused>(aten, "take take.out");
  register_calls<&put_body, Overlap::kSelf>(aten, "put_");
  register_calls<&scatter_body, Overlap::kSelf>(
      aten,
      "scatter.src scatter.src_out scatter_.src scatter.value scatter.value_out "
      "scatter_.value");
  register_calls<&scatter_reducing_body, Overlap::kSelf>(
      aten,
      "scatter.reduce scatter.reduce_out scatter_.reduce scatter.value_reduce "
      "scatter.value_reduce_out scatter_.value_reduce");
  register_calls<&scatter_add_body, Overlap::kSelf>(aten,
                                                    "scatter_add scatter_add.out scatter_add_");
  register_calls<&scatter_reduce_body, Overlap::kSelf>(
      aten, "scatter_reduce.two scatter_reduce.two_out scatter_reduce_.two");
  register_calls<&index_add_body, Overlap::kSelf>(aten, "index_add index_add.out index_add_");
  register_calls<&index_copy_body, Overlap::kSelf>(aten, "index_copy index_copy.out index_copy_");
  register_calls<&index_fill_body, Overlap::kSelf>(aten,
                                                   "index_fill_.int_Scalar index_fill_.int_Tensor");
  register_calls<&embedding_backward_body>(aten, "embedding_dense_backward");
  aten.impl("index.Tensor", CppFunction::makeFromBoxedKernel(&boxed_index<&index_body>));
  aten.impl("_index_put_impl_", CppFunction::makeFromBoxedKernel(&boxed_index<&index_put_body>));
}

}  // namespace lamella::cuda
