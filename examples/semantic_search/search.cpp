// Kernels of the operators that search.yaml declares.
#include <cmath>

#include <lamella/lamella.h>

#include "search_ops/native_functions.h"

namespace search::native {
namespace {

void check_shapes(const lamella::Tensor& hidden, const lamella::Tensor& mask) {
  LAMELLA_CHECK(hidden.dim() == 3,
                "mean_pool_normalize: expected 'hidden' to have 3 dimensions, "
                "got ",
                hidden.dim());
  LAMELLA_CHECK(mask.sizes() == hidden.sizes().slice(0, 2),
                "mean_pool_normalize: expected 'mask' to have the shape ",
                hidden.sizes().slice(0, 2), ", got ", mask.sizes());
  LAMELLA_CHECK_TYPE(hidden.scalar_type() == lamella::kFloat,
                     "mean_pool_normalize: expected 'hidden' to be float32, got ",
                     hidden.scalar_type());
  LAMELLA_CHECK_TYPE(mask.scalar_type() == lamella::kLong,
                     "mean_pool_normalize: expected 'mask' to be int64, got ", mask.scalar_type());
}

lamella::Tensor make_result(const lamella::Tensor& hidden) {
  return lamella::empty({hidden.size(0), hidden.size(2)}, hidden.options());
}

// The mean of the rows whose mask is not 0, scaled to length 1. rows: [tokens, size].
void pool_sentence(const float* rows, const int64_t* mask, int64_t tokens, int64_t size,
                   float* result) {
  for (int64_t k = 0; k < size; ++k) result[k] = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    if (mask[t] == 0) continue;
    for (int64_t k = 0; k < size; ++k) result[k] += rows[t * size + k];
  }
  // The sum has the mean's direction, so the number of tokens is not needed. A sentence without
  // tokens stays zero.
  double squares = 0;
  for (int64_t k = 0; k < size; ++k) squares += static_cast<double>(result[k]) * result[k];
  if (squares == 0) return;
  const float scale = static_cast<float>(1 / std::sqrt(squares));
  for (int64_t k = 0; k < size; ++k) result[k] *= scale;
}

}  // namespace

lamella::Tensor mean_pool_normalize_cpu(const lamella::Tensor& hidden,
                                        const lamella::Tensor& mask) {
  check_shapes(hidden, mask);
  const lamella::Tensor rows = hidden.contiguous(), kept = mask.contiguous();
  const int64_t tokens = rows.size(1), size = rows.size(2);
  lamella::Tensor result = make_result(rows);
  for (int64_t s = 0; s < rows.size(0); ++s) {
    pool_sentence(rows.const_data_ptr<float>() + s * tokens * size,
                  kept.const_data_ptr<int64_t>() + s * tokens, tokens, size,
                  result.mutable_data_ptr<float>() + s * size);
  }
  return result;
}

// Kernels for Meta: shapes only, for tracers.
lamella::Tensor mean_pool_normalize_meta(const lamella::Tensor& hidden,
                                         const lamella::Tensor& mask) {
  check_shapes(hidden, mask);
  return make_result(hidden);
}

}  // namespace search::native
