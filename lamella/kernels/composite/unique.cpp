// Distinct values: unique, its consecutive form, isin, msort.
#include "lamella/api/generated_kernels.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/selecting.h"

namespace lamella::native {

namespace {

// The runs of equal lines along a tensor's first dimension, from which all results are made.
struct Runs {
  Tensor starts;  // positions, int64
  Tensor groups;  // the run that each position is in
};
Runs runs_of(const Tensor& begins) {
  return {begins.nonzero().flatten(), begins.to(kLong).cumsum(0).sub(1)};
}
// True for each line that differs from the one before it, and for the first one.
Tensor begins_of(const Tensor& lines) {
  int64_t n = lines.size(0);
  Tensor first = lamella::ones({n < 1 ? n : 1}, TensorOptions(kBool).device(lines.device()));
  if (n < 2) return first;
  Tensor differs = lines.narrow(0, 1, n - 1).ne(lines.narrow(0, 0, n - 1));
  if (differs.dim() > 1) differs = differs.flatten(1).any(1);
  return lamella::cat({first, differs}, 0);
}
Tensor lengths_of(const Tensor& starts, int64_t n) {
  if (n == 0) return starts;
  Tensor end = lamella::full({1}, n, starts.options());
  return lamella::cat({starts.narrow(0, 1, starts.numel() - 1), end}, 0).sub(starts);
}

using Unique = std::tuple<Tensor, Tensor, Tensor>;

// Finds the runs of a 1-d tensor. `order`, if defined, gives each element's original position.
Unique unique_runs(const Tensor& self, const Tensor& order, bool inverse, bool counts) {
  Tensor line = self.contiguous();
  int64_t n = line.numel();
  auto device = self.device();
  // Operators are faster than the loop, and their mask takes a byte of memory for each element.
  constexpr int64_t kMany = 4096, kMost = int64_t{1} << 20;
  if (!inverse && !counts && n >= kMany && n <= kMost && device.is_cpu()) {
    const Tensor begins = new_tensor({n}, kBool, device);
    *begins.mutable_data_ptr<bool>() = true;
    Tensor after = begins.narrow(0, 1, n - 1);
    lamella::ne_out(after, line.narrow(0, 1, n - 1), line.narrow(0, 0, n - 1));
    const Tensor none = new_tensor({0}, kLong, device);
    return {lamella::masked_select(line, begins), none, none};
  }
  RunsOut out{runs_on(device.type(), line, nullptr), nullptr, nullptr, nullptr, nullptr};
  Tensor values = new_tensor({out.runs}, self.scalar_type(), device);
  Tensor groups = new_tensor({inverse ? n : 0}, kLong, device);
  Tensor lengths = new_tensor({counts ? out.runs : 0}, kLong, device);
  out.values = values.data_ptr();
  if (inverse) out.groups = groups.mutable_data_ptr<int64_t>();
  if (counts) out.starts = lengths.mutable_data_ptr<int64_t>();
  if (order.defined()) out.order = order.const_data_ptr<int64_t>();
  runs_on(device.type(), line, &out);
  for (int64_t i = 0; counts && i < out.runs; ++i) {
    out.starts[i] = (i + 1 < out.runs ? out.starts[i + 1] : n) - out.starts[i];
  }
  return {values, groups, lengths};
}

// The distinct lines, given an `order` in which equal ones are adjacent. Always returns all three
// results, as PyTorch does.
Unique unique_lines(const Tensor& self, int64_t dim, const Tensor& order) {
  Tensor lines = self.movedim(dim, 0);
  Tensor sorted = order.defined() ? lines.index_select(0, order) : lines;
  Runs runs = runs_of(begins_of(sorted));
  Tensor result = sorted.index_select(0, runs.starts).movedim(0, dim);
  Tensor where =
      order.defined() ? lamella::empty_like(order).scatter_(0, order, runs.groups) : runs.groups;
  return {result.contiguous(), where, lengths_of(runs.starts, lines.size(0))};
}
}  // namespace

std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool sorted, bool return_inverse,
                                            bool return_counts) {
  Tensor flat = self.reshape({-1});
  DeviceType device = self.device().type();
  if (!return_inverse && !self.is_meta() && sort_values_on.supports(device)) {
    Tensor line = new_tensor({flat.numel()}, flat.scalar_type(), self.device());
    sort_values_on(device, flat.resolve_neg().contiguous(), line);
    return unique_runs(line, Tensor(), false, return_counts);
  }
  auto [line, order] = lamella::sort(flat, true, 0, false);
  auto [values, inverse, counts] =
      unique_runs(line, order.contiguous(), return_inverse, return_counts);
  return {values, return_inverse ? inverse.view(self.sizes()) : inverse, counts};
}
std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted, bool return_inverse) {
  auto [values, inverse, counts] = lamella::_unique2(self, sorted, return_inverse);
  return {values, inverse};
}

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool sorted,
                                              bool return_inverse, bool return_counts) {
  dim = maybe_wrap_dim(dim, self.dim(), "unique_dim");
  int64_t n = self.size(dim);
  Tensor lines = self.movedim(dim, 0).reshape({n, n == 0 ? 0 : self.numel() / n});
  // Sorts by the last column first; stable sorts by the others keep that order of equal elements.
  Tensor order = lamella::arange(n, TensorOptions(kLong).device(self.device()));
  for (int64_t column = lines.size(1); column-- > 0;) {
    Tensor keys = lines.select(1, column).index_select(0, order);
    order = order.index_select(0, std::get<1>(lamella::sort(keys, true, 0, false)));
  }
  return unique_lines(self, dim, order);
}
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim,
                                                          bool return_inverse, bool return_counts) {
  dim = maybe_wrap_dim(dim, self.dim(), "unique_dim_consecutive");
  return unique_lines(self, dim, Tensor());
}
std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse,
                                                      bool return_counts,
                                                      std::optional<int64_t> dim) {
  if (dim && (self.dim() != 1 || *dim != 0)) {
    return lamella::unique_dim_consecutive(self, *dim, return_inverse, return_counts);
  }
  auto [values, inverse, counts] =
      unique_runs(self.reshape({-1}), Tensor(), return_inverse, return_counts);
  return {values, return_inverse ? inverse.view(self.sizes()) : inverse, counts};
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert) {
  lamella::detail::SameDevice device("isin");
  device.see("elements", elements);
  device.see("test_elements", test_elements);
  ScalarType dtype = lamella::result_type(elements, test_elements);
  bool is_small_float = is_floating_point(dtype) && element_size(dtype) == 1;
  bool directly = !elements.is_meta() && isin_on.supports(elements.device().type()) &&
                  !is_complex(dtype) && !is_small_float && test_elements.numel() > 0 &&
                  test_elements.numel() < INT32_MAX;
  if (directly) {
    Tensor is_in = new_tensor(elements.sizes(), kBool, elements.device());
    isin_on(elements.device().type(), elements.to(dtype).resolve_neg().contiguous(),
            test_elements.to(dtype).resolve_neg().contiguous(), is_in);
    return invert ? is_in.logical_not() : is_in;
  }
  Tensor tests = std::get<0>(test_elements.to(dtype).reshape({-1}).sort());
  Tensor found;
  if (tests.numel() == 0) {
    found = lamella::zeros(elements.sizes(), TensorOptions(kBool).device(elements.device()));
  } else {
    Tensor values = elements.to(dtype);
    Tensor at = lamella::searchsorted(tests, values.contiguous()).clamp_max(tests.numel() - 1);
    found = tests.index({at}).eq(values);
  }
  return invert ? found.logical_not() : found;
}
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique, bool invert) {
  return invert ? elements.ne(test_element) : elements.eq(test_element);
}
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert) {
  Tensor found = test_elements.eq(element).any();
  return invert ? found.logical_not() : found;
}

Tensor msort(const Tensor& self) {
  return std::get<0>(lamella::sort(self, self.dim() == 0 ? -1 : 0));
}

}  // namespace lamella::native
