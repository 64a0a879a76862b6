// Cholesky decomposition and triangular systems, over batches of matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/contraction.h"
#include "lamella/graph/evaluate/elements.h"

namespace lamella::hlo {
namespace {

template <class Wide>
Wide conjugate(const Wide& value) {
  if constexpr (std::is_same_v<Wide, complex<double>>) {
    return {value.real(), -value.imag()};
  } else {
    return value;
  }
}

// Computes l of a = l * adjoint(l), or u of a = adjoint(u) * u, from one triangle of a. The other
// triangle of the result is zero. All elements of the triangle are NaN if a is not positive
// definite.
template <class Wide>
void decompose(const Wide* a, Wide* result, int64_t n, bool lower) {
  // Column i of u is the conjugate of row i of l, so both cases compute l.
  auto source = [&](int64_t i, int64_t j) {
    return lower ? a[i * n + j] : conjugate(a[j * n + i]);
  };
  std::vector<Wide> l(static_cast<size_t>(n * n));
  bool definite = true;
  for (int64_t j = 0; j < n && definite; ++j) {
    double pivot = widened<double>(source(j, j));
    for (int64_t k = 0; k < j; ++k) {
      Wide entry = l[static_cast<size_t>(j * n + k)];
      pivot -= widened<double>(entry * conjugate(entry));
    }
    definite = pivot > 0 && std::isfinite(pivot);
    double diagonal = std::sqrt(pivot);
    l[static_cast<size_t>(j * n + j)] = Wide(diagonal);
    for (int64_t i = j + 1; i < n; ++i) {
      count_steps(j);
      Wide sum = source(i, j);
      for (int64_t k = 0; k < j; ++k) {
        sum =
            sum - l[static_cast<size_t>(i * n + k)] * conjugate(l[static_cast<size_t>(j * n + k)]);
      }
      l[static_cast<size_t>(i * n + j)] = sum / Wide(diagonal);
    }
  }
  if (!definite) {
    std::fill_n(result, n * n, Wide(std::numeric_limits<double>::quiet_NaN()));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      Wide entry = l[static_cast<size_t>(i * n + j)];
      (lower ? result[i * n + j] : result[j * n + i]) = lower ? entry : conjugate(entry);
    }
  }
}

}  // namespace

Value evaluate_cholesky(Step& step) {
  const Shape& shape = step.shape();
  int64_t n = shape.dimension(shape.rank() - 1);
  bool lower = step.instruction.flag(AttributeKey::Lower);
  Value result = step.result();
  visit_wide(shape.element_type(), [&]<class Wide>() {
    if constexpr (std::is_same_v<Wide, double> || std::is_same_v<Wide, complex<double>>) {
      std::vector<Wide> a = widened<Wide>(step.operands[0]), all(a.size());
      for (size_t m = 0; m < a.size(); m += static_cast<size_t>(n * n)) {
        decompose(a.data() + m, all.data() + m, n, lower);
      }
      store_wide(all, result);
    } else {
      fail(step.instruction, "expected floating-point or complex numbers, got ",
           element_name(shape.element_type()));
    }
  });
  return result;
}

Value evaluate_triangular_solve(Step& step) {
  const Instruction& i = step.instruction;
  const Shape& shape = step.shape();
  int64_t n = step.operands[0].shape().dimension(shape.rank() - 1);
  bool left = i.flag(AttributeKey::LeftSide), unit = i.flag(AttributeKey::UnitDiagonal);
  std::string_view how = i.text(AttributeKey::TransposeA);
  bool transposed = how == "TRANSPOSE" || how == "ADJOINT", adjoint = how == "ADJOINT";
  // Solves op(a) x = b; x op(a) = b is solved as transpose(op(a)) transpose(x) = transpose(b).
  bool swapped = transposed == left;
  bool forward = i.flag(AttributeKey::Lower) != swapped;
  int64_t rows = shape.dimension(shape.rank() - 2), columns = shape.dimension(shape.rank() - 1);
  int64_t systems = left ? columns : rows, step_of_x = left ? columns : 1;
  int64_t step_of_system = left ? 1 : columns;
  Value result = step.result();
  visit_wide(shape.element_type(), [&]<class Wide>() {
    if constexpr (std::is_same_v<Wide, double> || std::is_same_v<Wide, complex<double>>) {
      std::vector<Wide> a = widened<Wide>(step.operands[0]), b = widened<Wide>(step.operands[1]);
      auto entry = [&](const Wide* matrix, int64_t row, int64_t column) {
        Wide value = swapped ? matrix[column * n + row] : matrix[row * n + column];
        return adjoint ? conjugate(value) : value;
      };
      const Wide* matrix = a.data();
      for (size_t m = 0; m < b.size(); m += static_cast<size_t>(rows * columns), matrix += n * n) {
        for (int64_t s = 0; s < systems; ++s) {
          Wide* x = b.data() + m + s * step_of_system;
          for (int64_t k = 0; k < n; ++k) {
            int64_t row = forward ? k : n - 1 - k;
            count_steps(k);
            Wide sum = x[row * step_of_x];
            for (int64_t j = 0; j < k; ++j) {
              int64_t column = forward ? j : n - 1 - j;
              sum = sum - entry(matrix, row, column) * x[column * step_of_x];
            }
            x[row * step_of_x] = unit ? sum : sum / entry(matrix, row, row);
          }
        }
      }
      store_wide(b, result);
    } else {
      fail(i, "expected floating-point or complex numbers, got ",
           element_name(shape.element_type()));
    }
  });
  return result;
}

}  // namespace lamella::hlo
