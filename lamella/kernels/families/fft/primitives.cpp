// The three primitive Fourier transforms: of complex numbers, of real numbers, and the inverse of
// the latter. `normalization` is 0 for none, 1 for a division by the square root of the number of
// points, 2 for one by that number.
#include <algorithm>
#include <cmath>

#include "lamella/kernels/device_math.h"
#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/fft/transform.h"

namespace aten::native {
namespace {

double scale_of(IntArrayRef sizes, IntArrayRef dims, int64_t normalization) {
  double points = 1;
  for (int64_t d : dims) points *= static_cast<double>(sizes[static_cast<size_t>(d)]);
  if (normalization == 0) return 1;
  return normalization == 1 ? 1 / std::sqrt(points) : 1 / points;
}

Dims checked(const char* op, const Tensor& self, IntArrayRef dims, bool complex) {
  const bool fits = complex ? self.is_complex() : self.is_floating_point();
  LAMELLA_CHECK_TYPE(fits && self.scalar_type() != kHalf && self.scalar_type() != kBFloat16 &&
                         self.scalar_type() != kComplexHalf,
                     op, ": expected 'self' to be ",
                     complex ? "complex64 or complex128" : "float32 or float64", ", got ",
                     self.scalar_type());
  LAMELLA_CHECK(self.dim() > 0 || dims.empty(), op,
                ": expected 'self' to have at least 1 dimension, got a tensor with 0");
  Dims result;
  for (int64_t d : dims) result.push_back(wrapped(op, d, self.dim()));
  return result;
}

fft::Shape shape_of(IntArrayRef sizes, int64_t dim) {
  fft::Shape shape{1, sizes[static_cast<size_t>(dim)], 1};
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (d < dim) shape.outer *= sizes[static_cast<size_t>(d)];
    if (d > dim) shape.inner *= sizes[static_cast<size_t>(d)];
  }
  return shape;
}

// Calls f with a null pointer to float or double, by the precision of a dtype.
template <class F>
void by_precision(ScalarType type, F f) {
  if (type == kFloat || type == kComplexFloat) {
    f(static_cast<float*>(nullptr));
  } else {
    f(static_cast<double*>(nullptr));
  }
}

void transform_along(const Tensor& from, const Tensor& to, int64_t dim, bool forward,
                     double scale) {
  by_precision(to.scalar_type(), [&]<class T>(T*) {
    fft::complex_transform(shape_of(to.sizes(), dim), static_cast<const T*>(from.const_data_ptr()),
                           static_cast<T*>(to.mutable_data_ptr()), forward, scale);
  });
}

// Zeros whose elements along the dimension are adjacent, as those of a result that is transformed.
Tensor zeros_along(Dims sizes, int64_t dim, const TensorOptions& options) {
  const auto at = sizes.begin() + dim;
  std::rotate(at, at + 1, sizes.end());
  return lamella::zeros(sizes, options).movedim(-1, dim);
}

// The transforms of a device over the last `rank` dimensions of a contiguous tensor.
void transform_on_device(const char* op, const Tensor& from, const Tensor& to, int rank,
                         bool forward, double scale) {
  const Tensor& longer = from.is_complex() && !to.is_complex() ? to : from;
  lamella::native::DeviceFourier call{};
  call.device = to.device();
  call.from_real = !from.is_complex();
  call.to_real = !to.is_complex();
  call.forward = forward;
  call.is_double = from.scalar_type() == kDouble || from.scalar_type() == kComplexDouble;
  call.rank = rank;
  call.batch = longer.numel();
  for (int i = 0; i < rank; ++i) {
    call.n[i] = longer.size(i - rank);
    call.batch /= call.n[i];
  }
  call.from = from.data_ptr();
  call.to = to.data_ptr();
  lamella::native::check_solved(lamella::native::device_math(op, call.device).fourier(op, call), op,
                                call.device);
  if (scale == 1) return;
  Tensor numbers = to.is_complex() ? lamella::view_as_real(to) : to;
  numbers.mul_(scale);
}
Tensor complex_on_device(const Tensor& self, const Dims& dims, bool forward, double scale) {
  constexpr size_t kMostDims = 3;
  Tensor result = self;
  for (size_t done = 0; done < dims.size(); done += kMostDims) {
    const size_t rank = std::min(kMostDims, dims.size() - done);
    const IntArrayRef part(dims.data() + done, rank);
    Dims last;
    for (size_t i = 0; i < rank; ++i)
      last.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(rank));
    const Tensor from = result.movedim(part, last).contiguous();
    const Tensor to = lamella::empty(from.sizes(), from.options());
    transform_on_device("_fft_c2c", from, to, static_cast<int>(rank), forward,
                        done + rank == dims.size() ? scale : 1);
    result = to.movedim(last, part);
  }
  return result;
}

}  // namespace

Tensor fft_c2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward) {
  const Dims dims = checked("_fft_c2c", self, dim, true);
  if (self.is_meta()) return lamella::empty(self.sizes(), self.options());
  if (dims.empty() || self.numel() == 0) return self.clone();
  const double scale = scale_of(self.sizes(), dims, normalization);
  if (!self.is_cpu()) return complex_on_device(self, dims, forward, scale);
  Tensor from = self.contiguous();
  const Tensor out = lamella::empty(self.sizes(), self.options());
  for (size_t i = dims.size(); i-- > 0;) {
    transform_along(from, out, dims[i], forward, i == 0 ? scale : 1);
    from = out;
  }
  return out;
}

Tensor fft_r2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  const Dims dims = checked("_fft_r2c", self, dim, false);
  LAMELLA_CHECK(!dims.empty(), "_fft_r2c: expected 'dim' not to be empty");
  const ScalarType type = to_complex_type(self.scalar_type());
  const int64_t last = dims.back();
  Dims sizes = sizes_of(self);
  int64_t& points = sizes[static_cast<size_t>(last)];
  if (onesided) points = points / 2 + 1;
  if (self.is_meta() || self.numel() == 0) {
    if (onesided && dims.size() == 1) return zeros_along(sizes, last, self.options().dtype(type));
    return lamella::zeros(sizes, self.options().dtype(type));
  }
  if (!onesided) return aten::_fft_c2c(self.to(type), dims, normalization, true);
  const Tensor from = self.movedim(last, -1).contiguous();
  Dims moved = sizes_of(from);
  moved.back() = points;
  const Tensor out = lamella::empty(moved, self.options().dtype(type));
  const bool alone = dims.size() == 1;
  const double scale = scale_of(self.sizes(), dims, normalization);
  if (!self.is_cpu()) {
    transform_on_device("_fft_r2c", from, out, 1, true, alone ? scale : 1);
    const Tensor half = out.movedim(-1, last);
    const Dims others(dims.begin(), dims.end() - 1);
    return alone ? half : complex_on_device(half, others, true, scale);
  }
  by_precision(type, [&]<class T>(T*) {
    fft::real_transform(shape_of(from.sizes(), from.dim() - 1),
                        static_cast<const T*>(from.const_data_ptr()),
                        static_cast<T*>(out.mutable_data_ptr()), true, alone ? scale : 1);
  });
  const Tensor result = out.movedim(-1, last);
  if (alone) return result;
  const Tensor dense = result.contiguous();
  for (size_t i = dims.size() - 1; i-- > 0;) {
    transform_along(dense, dense, dims[i], true, i == 0 ? scale : 1);
  }
  return dense;
}

Tensor fft_c2r(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size) {
  const Dims dims = checked("_fft_c2r", self, dim, true);
  LAMELLA_CHECK(!dims.empty(), "_fft_c2r: expected 'dim' not to be empty");
  const ScalarType type = to_real_type(self.scalar_type());
  const int64_t last = dims.back();
  LAMELLA_CHECK(last_dim_size > 0 && self.size(last) == last_dim_size / 2 + 1,
                "_fft_c2r: expected dimension ", last, " of 'self' to have ", last_dim_size / 2 + 1,
                " elements for ", last_dim_size, " of the result, got ", self.size(last));
  Dims sizes = sizes_of(self);
  sizes[static_cast<size_t>(last)] = last_dim_size;
  if (self.is_meta() || self.numel() == 0) {
    return zeros_along(sizes, last, self.options().dtype(type));
  }
  Tensor from = self;
  if (dims.size() > 1) {
    from = aten::_fft_c2c(self, IntArrayRef(dims.data(), dims.size() - 1), 0, false);
  }
  from = from.movedim(last, -1).contiguous();
  Dims moved = sizes_of(from);
  moved.back() = last_dim_size;
  const Tensor out = lamella::empty(moved, self.options().dtype(type));
  const double scale = scale_of(sizes, dims, normalization);
  if (!self.is_cpu()) {
    if (from.is_alias_of(self)) from = from.clone();  // it is overwritten
    transform_on_device("_fft_c2r", from, out, 1, false, scale);
    return out.movedim(-1, last);
  }
  by_precision(type, [&]<class T>(T*) {
    fft::transform_to_real(shape_of(out.sizes(), out.dim() - 1),
                           static_cast<const T*>(from.const_data_ptr()),
                           static_cast<T*>(out.mutable_data_ptr()), false, scale);
  });
  return out.movedim(-1, last);
}

}  // namespace aten::native
