// Masks (masked_fill_, masked_select, masked_scatter_, nonzero), triangles, ranges, flip, cat,
// repeat_interleave, searchsorted, bucketize, bincount.
#include "lamella/cuda/call.h"

#include <cstring>

#include "lamella/core/memory_overlap.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/select.h"
#include "lamella/kernels/dims.h"
#include "lamella/structured.h"

namespace lamella::cuda {
namespace {

// ---- Masks ----

bool fill_masked(Call& call, MaskParameters* p) {
  const Tensor self = call.output(), mask = call.tensor(1);
  const Sizes strides = broadcast_strides(mask, self.sizes(), self.sizes().size());
  return lay(&p->walk, self.sizes(), {Strided(self), Strided(mask.data_ptr(), strides, 1)}) &&
         launch_named(call.device(), "fill_masked", suffix_of_bytes(self.itemsize()), p,
                      p->walk.numel);
}
bool masked_fill_body(Call& call) {
  const Tensor self = call.output();
  const Scalar value = call.scalar(2);
  MaskParameters p{};
  visit_stored(self.scalar_type(), call.name(), [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T converted = value.to<T>();
    std::memcpy(p.number, &converted, sizeof(T));
  });
  return fill_masked(call, &p);
}
bool masked_fill_tensor_body(Call& call) {
  const Tensor self = call.output();
  if (is_complex(call.tensor(2).scalar_type()) && !is_complex(self.scalar_type())) return false;
  const Tensor value = call.tensor(2).to(self.scalar_type());
  MaskParameters p{};
  p.number_at = address_of(value);
  return fill_masked(call, &p);
}

// For each element of a mask, how many are set up to it.
Tensor positions_in(const Tensor& mask) { return mask.reshape({-1}).cumsum(0, ScalarType::Long); }
int64_t last_of(const Tensor& positions) {
  const int64_t n = positions.numel();
  return n == 0 ? 0 : positions.narrow(0, n - 1, 1).item().toLong();
}

bool masked_scatter_body(Call& call) {
  const Tensor self = call.output(), source = call.tensor(2).contiguous();
  if (self.numel() == 0) return true;
  const Tensor mask = call.tensor(1).expand(self.sizes()).contiguous();
  const Tensor positions = positions_in(mask);
  const Sizes dense = Sizes(mask.strides());
  MaskParameters p{};
  if (!lay(&p.walk, self.sizes(),
           {Strided(self), Strided(mask), Strided(positions.data_ptr(), dense, 8)})) {
    return false;
  }
  const IndexSlot slot =
      report_slot(call.device(), "masked_scatter_", IndexText::kSource, 0, source.numel());
  p.slot = slot.slot;
  p.any = slot.any;
  p.to = address_of(source);
  p.step = static_cast<int64_t>(source.itemsize());
  p.limit = source.numel();
  return launch_named(call.device(), "spread", suffix_of_bytes(self.itemsize()), &p, p.walk.numel);
}

void check_mask(const char* op, const Tensor& mask) {
  LAMELLA_CHECK(mask.scalar_type() == ScalarType::Bool, op, ": expected 'mask' to be bool, got ",
                mask.scalar_type());
}
Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  check_mask("masked_select", mask);
  const native::Dims shape =
      native::broadcast_shapes(self.sizes(), mask.sizes(), "masked_select", "mask");
  if (mask.device() != self.device() || out.device() != self.device() ||
      out.scalar_type() != self.scalar_type() || suffix_of_bytes(self.itemsize()) == nullptr) {
    return counted_fallback<lamella::ops::masked_select_out>(self, mask, out);
  }
  check_no_internal_overlap("masked_select", "out", out);
  check_no_overlap("masked_select", "out", out, "self", self);
  check_no_overlap("masked_select", "out", out, "mask", mask);
  const Tensor dense = mask.expand(shape).contiguous(), source = self.expand(shape);
  const Tensor positions = positions_in(dense);
  const int64_t count = last_of(positions);
  if (may_share_memory(out, self) || may_share_memory(out, mask)) {
    out.copy_(lamella::masked_select(self, mask));
    return out;
  }
  lamella::detail::resize_out(out, count, {});
  if (count != 0) {
    const Sizes strides = Sizes(dense.strides());
    MaskParameters p{};
    LAMELLA_CHECK(lay(&p.walk, shape,
                      {Strided(source), Strided(dense), Strided(positions.data_ptr(), strides, 8)}),
                  "masked_select: expected at most ", kWalkDims, " dimensions, got ",
                  IntArrayRef(shape));
    p.to = address_of(out);
    p.step = out.stride(0) * static_cast<int64_t>(out.itemsize());
    const int device = self.device().index();
    ContextGuard guard(device);
    launch_named(device, "select", suffix_of_bytes(self.itemsize()), &p, p.walk.numel);
  }
  lamella_tensor_bump_version(out.impl());
  return out;
}
Tensor masked_select(const Tensor& self, const Tensor& mask) {
  Tensor out = lamella::empty({0}, self.options());
  masked_select_out(self, mask, out);
  return out;
}

Tensor& nonzero_out(const Tensor& self, Tensor& out) {
  LAMELLA_CHECK(out.scalar_type() == ScalarType::Long, "nonzero: expected 'out' to be int64, got ",
                out.scalar_type());
  const Tensor mask =
      (self.scalar_type() == ScalarType::Bool && !may_share_memory(self, out) ? self : self.ne(0))
          .contiguous();
  const Tensor positions = positions_in(mask);
  const int64_t found = last_of(positions), rank = self.dim();
  if (out.sizes() != IntArrayRef({found, rank})) {
    lamella::detail::resize_out(out, {found, rank}, {1, found > 0 ? found : 1});
  }
  if (out.numel() != 0) {
    CoordinateParameters p{};
    p.numel = mask.numel();
    p.ndim = static_cast<int32_t>(rank);
    for (int64_t d = 0; d < rank; ++d) p.sizes[d] = self.size(d);
    p.mask = address_of(mask);
    p.positions = address_of(positions);
    p.to = address_of(out);
    p.row_stride = out.stride(0);
    p.column_stride = out.stride(1);
    const int device = self.device().index();
    ContextGuard guard(device);
    launch_named(device, "coordinates_of", "", &p, p.numel);
  }
  lamella_tensor_bump_version(out.impl());
  return out;
}
Tensor nonzero(const Tensor& self) {
  Tensor out = lamella::empty({0}, self.options().dtype(ScalarType::Long));
  nonzero_out(self, out);
  return out;
}

// ---- Triangles, ranges, flip, cat ----

bool triangle(Call& call, bool lower) {
  const Tensor self = call.tensor(0), out = call.output();
  MaskParameters p{};
  if (!lay(&p.walk, out.sizes(), {Strided(out), Strided(self)})) return false;
  p.rows = out.size(-2);
  p.columns = out.size(-1);
  const int64_t diagonal = call.integer(1);
  p.diagonal = diagonal < -p.rows ? -p.rows : diagonal > p.columns ? p.columns : diagonal;
  p.lower = lower ? 1 : 0;
  return launch_named(call.device(), "triangle", suffix_of_bytes(out.itemsize()), &p, p.walk.numel);
}
bool tril_body(Call& call) { return triangle(call, true); }
bool triu_body(Call& call) { return triangle(call, false); }

bool fill_range(Call& call, RangeParameters* p) {
  const Tensor out = call.output();
  return lay(&p->walk, out.sizes(), {Strided(out)}) &&
         launch_named(call.device(), "range", suffix_of_type(out.scalar_type()), p, p->walk.numel);
}
bool arange_body(Call& call) {
  const ScalarType dtype = call.output().scalar_type();
  if (is_complex(dtype)) return false;
  const Scalar start = call.scalar(0), step = call.scalar(2);
  RangeParameters p{};
  if (is_integral(dtype, true)) {
    p.first_whole = start.to<int64_t>();
    p.step_whole = step.to<int64_t>();
  } else {
    p.first = start.to<double>();
    p.step = step.to<double>();
  }
  return fill_range(call, &p);
}
bool linspace_body(Call& call) {
  const ScalarType dtype = call.output().scalar_type();
  const int64_t steps = call.integer(2);
  if (is_complex(dtype) || dtype == ScalarType::Bool) return false;
  if (steps == 1) {
    Tensor(call.output()).fill_(call.scalar(0));
    return true;
  }
  RangeParameters p{};
  p.meets = 1;
  // Ends are converted to the dtype first, and steps are of the type that is computed in.
  visit_numbers(dtype, "linspace", [&](auto tag) {
    using T = type_of<decltype(tag)>;
    if constexpr (!is_complex_type_v<T>) {
      p.first = static_cast<double>(call.scalar(0).template to<T>());
      p.last = static_cast<double>(call.scalar(1).template to<T>());
    }
  });
  const auto gaps = static_cast<double>(steps - 1);
  const bool narrow = !is_integral(dtype, true) && dtype != ScalarType::Double;
  p.step = narrow ? static_cast<double>((static_cast<float>(p.last) - static_cast<float>(p.first)) /
                                        static_cast<float>(gaps))
                  : (p.last - p.first) / gaps;
  return fill_range(call, &p);
}
bool eye_body(Call& call) {
  Tensor out = call.output();
  out.zero_();
  out.diagonal().fill_(1);
  return true;
}

bool flip_body(Call& call) {
  const Tensor self = call.tensor(0), out = call.output();
  if (out.numel() == 0) return true;
  Sizes from = Sizes(self.strides());
  const auto bytes = static_cast<int64_t>(self.itemsize());
  auto* start = static_cast<char*>(self.data_ptr());
  for (int64_t dim : call.integers(1)) {
    const auto d = static_cast<size_t>(dim < 0 ? dim + self.dim() : dim);
    start += (self.sizes()[d] - 1) * from[d] * bytes;
    from[d] = -from[d];
  }
  MaskParameters p{};
  return lay(&p.walk, self.sizes(), {Strided(out), Strided(start, from, bytes)}) &&
         launch_named(call.device(), "move", suffix_of_bytes(self.itemsize()), &p, p.walk.numel);
}
bool cat_body(Call& call) {
  const Tensor out = call.output();
  const int64_t dim = call.integer(1) < 0 ? call.integer(1) + out.dim() : call.integer(1);
  // Whether a part of the result lies in one piece.
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= out.sizes()[static_cast<size_t>(d)];
  const bool pieces = outer == 1 && out.is_contiguous();
  char* to = static_cast<char*>(out.data_ptr());
  int64_t at = 0;
  for (size_t k = 0; k < call.count(0); ++k) {
    const Tensor t = call.tensor_of(0, k);
    if (t.dim() == 1 && t.numel() == 0) continue;
    const int64_t size = t.size(dim);
    if (pieces && t.is_contiguous() && t.scalar_type() == out.scalar_type() && !t.is_conj() &&
        !t.is_neg()) {
      copy_bytes(call.device(), to, t.data_ptr(), t.nbytes());
      to += t.nbytes();
    } else if (t.numel() != 0) {
      lamella::_copy_from(t, out.narrow(dim, at, size), false);
      to += static_cast<size_t>(t.numel()) * out.itemsize();
    }
    at += size;
  }
  return true;
}

// The gradient of a view: zeros, with the gradient at its place.
bool select_backward_body(Call& call) {
  Tensor out = call.output();
  out.zero_();
  const Tensor part = out.select(call.integer(2), call.integer(3));
  if (part.numel() != 0) lamella::_copy_from(call.tensor(0), part, false);
  return true;
}
bool slice_backward_body(Call& call) {
  Tensor out = call.output();
  out.zero_();
  const Tensor part = out.slice(call.integer(2), call.integer(3), call.integer(4), call.integer(5));
  if (part.numel() != 0) lamella::_copy_from(call.tensor(0), part, false);
  return true;
}

// ---- Searches and counts ----

bool run_search(Call& call, const Tensor& sequence, const Tensor& values, bool right,
                const Tensor& sorter) {
  const Tensor out = call.output();
  const ScalarType dtype = lamella::result_type(sequence, values);
  if (suffix_of_type(dtype) == nullptr || !out.is_contiguous()) return false;
  const Tensor ordered = sorter.defined() ? sequence.gather(-1, sorter) : sequence;
  const Tensor lines = ordered.to(dtype).contiguous(), given = values.to(dtype).contiguous();
  SearchParameters p{};
  p.numel = given.numel();
  p.length = sequence.size(-1);
  p.each = sequence.dim() == 1 ? (p.numel > 0 ? p.numel : 1) : given.size(-1);
  p.lines = address_of(lines);
  p.values = address_of(given);
  p.to = address_of(out);
  p.right = right ? 1 : 0;
  p.narrow = out.scalar_type() == ScalarType::Int ? 1 : 0;
  return launch_named(call.device(), "search", suffix_of_type(dtype), &p, p.numel);
}
bool searchsorted_body(Call& call) {
  const bool right = call.flag(3) || (!call.is_none(4) && call.text(4) == "right");
  return run_search(call, call.tensor(0), call.tensor(1), right, call.tensor(5));
}
bool bucketize_body(Call& call) {
  return run_search(call, call.tensor(1), call.tensor(0), call.flag(3), Tensor());
}

// The number as a tensor of the dtype that it has beside `like`.
Tensor number_like(const Scalar& number, const Tensor& like) {
  return lamella::full({}, number, TensorOptions(number.type()).device(like.device()))
      .to(lamella::result_type(like, number));
}
Tensor bucketize_number(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return lamella::bucketize(number_like(self, boundaries), boundaries, out_int32, right);
}
Tensor searchsorted_number(const Tensor& sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side,
                           const std::optional<Tensor>& sorter) {
  return lamella::searchsorted(sequence, number_like(self, sequence), out_int32, right, side,
                               sorter);
}
Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  // The CPU's checks need the contents, and the length is theirs as well.
  const bool is_served =
      repeats.dim() == 1 && repeats.numel() > 0 &&
      (repeats.scalar_type() == ScalarType::Long || repeats.scalar_type() == ScalarType::Int);
  if (is_served && repeats.amin().item().toLong() >= 0) {
    const Tensor ends = repeats.cumsum(0, ScalarType::Long);
    const int64_t total = last_of(ends);
    const bool fits = ends.amin().item().toLong() >= 0;  // sums wrap
    if (fits && (!output_size || *output_size == total)) {
      const Tensor at = lamella::arange(total, ends.options());
      return lamella::searchsorted(ends, at, false, true, std::nullopt, std::nullopt)
          .to(repeats.scalar_type());
    }
  }
  return counted_fallback<lamella::ops::repeat_interleave_Tensor>(repeats, output_size);
}

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  const bool weighted = weights.has_value() && weights->defined();
  const bool is_served =
      self.dim() == 1 && self.numel() > 0 && minlength >= 0 &&
      is_integral(self.scalar_type(), false) &&
      (!weighted || (weights->sizes() == self.sizes() && weights->device() == self.device()));
  if (is_served) {
    const Tensor at = self.to(ScalarType::Long);
    const int64_t least = at.amin().item().toLong(), most = at.amax().item().toLong();
    if (least >= 0 && most < INT64_MAX) {
      const ScalarType dtype = !weighted                                     ? ScalarType::Long
                               : weights->scalar_type() == ScalarType::Float ? ScalarType::Float
                                                                             : ScalarType::Double;
      const int64_t length = minlength > most + 1 ? minlength : most + 1;
      Tensor counts = lamella::zeros({length}, self.options().dtype(dtype));
      const Tensor by = weighted ? weights->to(dtype) : lamella::ones_like(at);
      return counts.index_add_(0, at, by);
    }
  }
  return counted_fallback<lamella::ops::bincount>(self, weights, minlength);
}

}  // namespace

void register_select(Library& aten) {
  register_calls<&masked_fill_body>(aten, "masked_fill_.Scalar");
  register_calls<&masked_fill_tensor_body>(aten, "masked_fill_.Tensor");
  register_calls<&masked_scatter_body>(aten, "masked_scatter_");
  aten.impl("masked_select", LAMELLA_FN(&masked_select));
  aten.impl("masked_select.out", LAMELLA_FN(&masked_select_out));
  aten.impl("nonzero", LAMELLA_FN(&nonzero));
  aten.impl("nonzero.out", LAMELLA_FN(&nonzero_out));
  register_calls<&tril_body>(aten, "tril tril.out tril_");
  register_calls<&triu_body>(aten, "triu triu.out triu_");
  register_calls<&arange_body>(aten, "arange.start_out range.out");
  register_calls<&linspace_body>(aten, "linspace.out");
  register_calls<&eye_body>(aten, "eye.out eye.m_out");
  register_calls<&flip_body>(aten, "flip");
  register_calls<&select_backward_body>(aten, "select_backward");
  register_calls<&slice_backward_body>(aten, "slice_backward");
  register_calls<&cat_body, Overlap::kRefused>(aten, "cat cat.out");
  register_calls<&searchsorted_body>(aten, "searchsorted.Tensor searchsorted.Tensor_out");
  register_calls<&bucketize_body>(aten, "bucketize.Tensor bucketize.Tensor_out");
  aten.impl("bucketize.Scalar", LAMELLA_FN(&bucketize_number));
  aten.impl("searchsorted.Scalar", LAMELLA_FN(&searchsorted_number));
  aten.impl("repeat_interleave.Tensor", LAMELLA_FN(&repeat_interleave));
  aten.impl("bincount", LAMELLA_FN(&bincount));
}

}  // namespace lamella::cuda
