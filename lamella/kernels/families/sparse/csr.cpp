// Products of sparse matrices in CSR format (compressed sparse rows).
#include <algorithm>
#include <atomic>

#include "lamella/kernels/by_capability.h"
#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/sparse/rows.h"

namespace lamella::sparse {

#if defined(__x86_64__)
namespace AVX2 {
template <class T, class I>
const RowFunctions<T, I>& rows_of();
}  // namespace AVX2
namespace AVX512 {
template <class T, class I>
const RowFunctions<T, I>& rows_of();
}  // namespace AVX512
#endif
namespace DEFAULT {
template <class T, class I>
const RowFunctions<T, I>& rows_of();
}  // namespace DEFAULT

template <class T, class I>
const RowFunctions<T, I>& rows() {
  LAMELLA_RETURN_BY_CAPABILITY("sparse", rows_of<T, I>());
}

}  // namespace lamella::sparse

namespace aten::native {
namespace {

constexpr int64_t kGrain = 32768;  // multiplications for which another thread pays

template <class T, class I>
void multiply(const char* op, const Tensor& crow, const Tensor& columns, const Tensor& values,
              const Tensor& other, const Tensor& out) {
  const auto& f = sparse::rows<T, I>();
  const auto* begins = crow.const_data_ptr<I>();
  const auto* places = columns.const_data_ptr<I>();
  const int64_t rows = crow.numel() - 1, count = columns.numel();
  bool grows = begins[0] == 0 && begins[rows] == count;
  for (int64_t row = 0; row < rows; ++row) grows &= begins[row] <= begins[row + 1];
  LAMELLA_CHECK(grows, op, ": expected 'crow' to grow from 0 to ", count, ", the number of values");
  const int64_t width = other.dim() == 1 ? 1 : other.size(1);
  const sparse::RowProduct<T, I> product = {begins,
                                            places,
                                            static_cast<const T*>(values.const_data_ptr()),
                                            static_cast<const T*>(other.const_data_ptr()),
                                            static_cast<T*>(out.mutable_data_ptr()),
                                            width,
                                            static_cast<uint64_t>(other.size(0))};
  if (rows == 0) return;
  std::atomic<bool> inside = true;
  in_parallel(rows, kGrain / ((count / rows + 1) * std::max<int64_t>(width, 1)) + 1,
              [&](int64_t begin, int64_t end) {
                if (!f.product(product, begin, end)) inside = false;
              });
  LAMELLA_CHECK_INDEX(inside, op, ": expected 'columns' to be in [0, ", other.size(0) - 1, "]");
}

template <class T>
void multiply_as(const char* op, const Tensor& crow, const Tensor& columns, const Tensor& values,
                 const Tensor& other, const Tensor& out) {
  if (crow.scalar_type() == kInt) {
    multiply<T, int32_t>(op, crow, columns, values, other, out);
  } else {
    multiply<T, int64_t>(op, crow, columns, values, other, out);
  }
}

}  // namespace

Tensor csr_mm(const Tensor& crow, const Tensor& columns, const Tensor& values,
              const Tensor& other) {
  const char* op = "_csr_mm";
  for (const auto& [name, t] : {std::pair("crow", &crow), std::pair("columns", &columns)}) {
    LAMELLA_CHECK_TYPE(t->scalar_type() == kInt || t->scalar_type() == kLong, op, ": expected '",
                       name, "' to be int32 or int64, got ", t->scalar_type());
  }
  LAMELLA_CHECK(crow.dim() == 1 && crow.numel() > 0, op,
                ": expected 'crow' to be a vector of at least one element, got ", crow.sizes());
  LAMELLA_CHECK(columns.dim() == 1, op, ": expected 'columns' to be a vector, got ",
                columns.sizes());
  LAMELLA_CHECK(values.sizes() == columns.sizes(), op, ": expected 'values' to be of shape ",
                columns.sizes(), ", got ", values.sizes());
  LAMELLA_CHECK(other.dim() == 1 || other.dim() == 2, op,
                ": expected 'other' to be a matrix or a vector, got ", other.sizes());
  const ScalarType type = values.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(
      type == kFloat || type == kDouble || type == kComplexFloat || type == kComplexDouble, op,
      ": expected 'values' to be float32, float64, complex64 or complex128, got ", type);
  LAMELLA_CHECK(other.scalar_type() == type, op, ": expected 'other' to be ", type, ", got ",
                other.scalar_type());
  Dims shape = sizes_of(other);
  shape[0] = crow.numel() - 1;
  const Tensor out = lamella::empty(shape, values.options());
  if (out.is_meta()) return out;
  const ScalarType index = crow.scalar_type() == columns.scalar_type() ? crow.scalar_type() : kLong;
  const Tensor begins = crow.to(index).contiguous(), places = columns.to(index).contiguous();
  const Tensor stored = values.contiguous();
  const Tensor dense = other.contiguous();
  if (type == kFloat) {
    multiply_as<float>(op, begins, places, stored, dense, out);
  } else if (type == kDouble) {
    multiply_as<double>(op, begins, places, stored, dense, out);
  } else if (type == kComplexFloat) {
    multiply_as<sparse::Pair<float>>(op, begins, places, stored, dense, out);
  } else {
    multiply_as<sparse::Pair<double>>(op, begins, places, stored, dense, out);
  }
  return out;
}

}  // namespace aten::native
