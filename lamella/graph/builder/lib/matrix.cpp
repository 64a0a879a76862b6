// Functions of matrices.
#include "lamella/graph/builder/lib/matrix.h"

#include <algorithm>

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/lib/arithmetic.h"
#include "lamella/graph/builder/lib/constants.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

const Shape& matrix(Emission& e, Op x) {
  const Shape& shape = e.array(x, "x");
  LAMELLA_EXPECT(shape.rank() >= 2, "'x' of 2 dimensions or more, got ", shape.to_string(false));
  return shape;
}
// The array of column - row over the last two dimensions.
Op diagonal_of_places(Emission& e, const Shape& shape) {
  Shape places = Shape::array(
      ElementType::S32, {shape.dimension(shape.rank() - 2), shape.dimension(shape.rank() - 1)});
  return Sub(e.at(Iota(e.within(), places, 1)), Iota(e.within(), places, 0));
}
// Broadcasts a mask of the last two dimensions over the batches.
Op for_batches(Emission& e, Op mask, const Shape& shape) {
  auto batches = shape.dimensions().first(shape.dimensions().size() - 2);
  return batches.empty() ? mask : Broadcast(e.at(mask), batches);
}
Op compare_diagonal(Emission& e, Op x, ComparisonDirection direction, int diagonal) {
  const Shape& shape = matrix(e, x);
  Op mask = Compare(e.at(diagonal_of_places(e, shape)), ConstantR0<int32_t>(e.within(), diagonal),
                    direction);
  return for_batches(e, mask, shape);
}

}  // namespace

Op IdentityMatrix(Within builder, PrimitiveType type, int64_t m, int64_t n) {
  return emit("IdentityMatrix", builder, [&](Emission& e) {
    Shape shape = Shape::array(ElementType::S32, {m, n});
    Op mask = Eq(e.at(Iota(e.within(), shape, 0)), Iota(e.within(), shape, 1));
    return ConvertElementType(e.at(mask), type);
  });
}
Op GetDiagonalMask(Operand x, int diagonal) {
  return emit("GetDiagonalMask", x, [&](Emission& e) {
    return compare_diagonal(e, x, ComparisonDirection::kEq, diagonal);
  });
}
Op GetMatrixDiagonal(Operand x, int k) {
  return emit("GetMatrixDiagonal", x, [&](Emission& e) {
    const Shape& shape = matrix(e, x);
    int64_t rank = shape.rank(), m = shape.dimension(rank - 2), n = shape.dimension(rank - 1);
    if (k <= -m || k >= n) {  // a diagonal beyond the matrix is empty
      std::vector<int64_t> sizes = copy_of(shape.dimensions().first(static_cast<size_t>(rank - 1)));
      sizes.back() = 0;
      return e.add_constant(Literal(shape.with_dimensions(std::move(sizes))));
    }
    int64_t row = std::max(0, -k), column = std::max(0, k);
    int64_t length = std::min(m - row, n - column);
    // Takes the square whose main diagonal is this one, zeroes all other elements, and sums over
    // rows.
    Op square = SliceInDim(e.at(x), row, row + length, 1, rank - 2);
    square = SliceInDim(e.at(square), column, column + length, 1, rank - 1);
    Op mask = compare_diagonal(e, square, ComparisonDirection::kEq, 0);
    Op kept = Select(e.at(mask), square, ZerosLike(e.at(square)));
    ElementType type = shape.element_type();
    return Reduce(e.at(kept), Zero(e.within(), type), CreateScalarAddComputation(type, e.builder()),
                  {rank - 2});
  });
}
Op GetMatrixDiagonalViaGather(Operand x, int k) {
  return emit("GetMatrixDiagonalViaGather", x,
              [&](Emission& e) { return GetMatrixDiagonal(e.at(x), k); });
}
Op TriangleMask(Operand x, int diagonal) {
  return emit("TriangleMask", x, [&](Emission& e) {
    return compare_diagonal(e, x, ComparisonDirection::kLe, diagonal);
  });
}
Op Triangle(Operand x, bool lower) {
  return emit("Triangle", x, [&](Emission& e) {
    Op mask =
        compare_diagonal(e, x, lower ? ComparisonDirection::kLe : ComparisonDirection::kGe, 0);
    return Select(e.at(mask), x, ZerosLike(e.at(x)));
  });
}
Op UpperTriangle(Operand x) {
  return emit("UpperTriangle", x, [&](Emission& e) { return Triangle(e.at(x), false); });
}
Op LowerTriangle(Operand x) {
  return emit("LowerTriangle", x, [&](Emission& e) { return Triangle(e.at(x), true); });
}

Op Symmetrize(Operand x, bool lower) {
  return emit("Symmetrize", x, [&](Emission& e) {
    const Shape& shape = matrix(e, x);
    LAMELLA_EXPECT(shape.dimension(shape.rank() - 2) == shape.dimension(shape.rank() - 1),
                   "'x' to be square matrices, got ", shape.to_string(false));
    Op other = TransposeInMinorDims(e.at(x));
    Op kept =
        compare_diagonal(e, x, lower ? ComparisonDirection::kLe : ComparisonDirection::kGe, 0);
    if (!is_complex(shape.element_type())) return Select(e.at(kept), x, other);
    Op real = Real(e.at(x)), none = ZerosLike(e.at(real));
    Op on_diagonal = compare_diagonal(e, x, ComparisonDirection::kEq, 0);
    Op joined = Select(e.at(kept), x, Conj(e.at(other)));
    return Select(e.at(on_diagonal), Complex(e.at(real), none), joined);
  });
}
Op SetMatrixDiagonal(Operand x, Op diagonal, int k) {
  return emit("SetMatrixDiagonal", x, [&](Emission& e) {
    const Shape& shape = matrix(e, x);
    int64_t rank = shape.rank(), m = shape.dimension(rank - 2), n = shape.dimension(rank - 1);
    int64_t length = std::max<int64_t>(0, std::min(m - std::max(0, -k), n - std::max(0, k)));
    std::vector<int64_t> sizes = copy_of(shape.dimensions().first(static_cast<size_t>(rank - 1)));
    sizes.back() = length;
    LAMELLA_EXPECT(e.array(diagonal, "diagonal").compatible(shape.with_dimensions(sizes)),
                   "'diagonal' to be ", shape.with_dimensions(sizes).to_string(false), ", got ",
                   e.array(diagonal, "diagonal").to_string(false));
    // An element of the diagonal fills its row, or its column below the main diagonal.
    int64_t along = k >= 0 ? rank - 2 : rank - 1;
    Op filled = PadInDim(e.at(diagonal), Zero(e.within(), shape.element_type()), rank - 2, 0,
                         shape.dimension(along) - length);
    std::vector<int64_t> places;
    for (int64_t d = 0; d < rank - 2; ++d) places.push_back(d);
    places.push_back(along);
    filled = BroadcastInDim(e.at(filled), shape.dimensions(), places);
    return Select(e.at(compare_diagonal(e, x, ComparisonDirection::kEq, k)), filled, x);
  });
}

Op BatchDot(Operand x, Op y, PrecisionConfig::Precision precision,
            std::optional<PrimitiveType> preferred_element_type) {
  return BatchDot(x, false, y, false, precision, preferred_element_type);
}
Op BatchDot(Operand x, bool transpose_x, Op y, bool transpose_y,
            PrecisionConfig::Precision precision,
            std::optional<PrimitiveType> preferred_element_type) {
  return emit("BatchDot", x, [&](Emission& e) {
    int64_t rank = matrix(e, x).rank();
    LAMELLA_EXPECT(e.array(y, "y").rank() == rank, "'y' of ", rank, " dimensions, got ",
                   e.shape(y).to_string(false));
    DotDimensionNumbers numbers;
    for (int64_t d = 0; d < rank - 2; ++d) {
      numbers.add_lhs_batch_dimensions(d);
      numbers.add_rhs_batch_dimensions(d);
    }
    numbers.add_lhs_contracting_dimensions(transpose_x ? rank - 2 : rank - 1);
    numbers.add_rhs_contracting_dimensions(transpose_y ? rank - 1 : rank - 2);
    PrecisionConfig config;
    config.add_operand_precision(precision);
    config.add_operand_precision(precision);
    return DotGeneral(e.at(x), y, numbers, &config, preferred_element_type);
  });
}

namespace {

using Labels = std::array<std::vector<int64_t>, 3>;
Labels labels_of(std::string_view einsum_config, int64_t x_rank, int64_t y_rank) {
  size_t comma = einsum_config.find(','), arrow = einsum_config.find("->");
  LAMELLA_EXPECT(
      comma != std::string_view::npos && arrow != std::string_view::npos && comma < arrow,
      "'einsum_config' as in \"ij,jk->ik\", got '", einsum_config, "'");
  std::string_view texts[] = {einsum_config.substr(0, comma),
                              einsum_config.substr(comma + 1, arrow - comma - 1),
                              einsum_config.substr(arrow + 2)};
  int64_t ranks[] = {x_rank, y_rank, 0}, hidden = 0;
  Labels made;
  for (size_t n = 0; n < 3; ++n) {
    std::string_view text = texts[n];
    size_t dots = text.find("...");
    if (dots != std::string_view::npos && n < 2) {
      hidden = ranks[n] - static_cast<int64_t>(text.size()) + 3;
    }
    for (size_t i = 0; i < text.size(); ++i) {
      if (i == dots) {
        for (int64_t label = hidden; label > 0; --label) made[n].push_back(-label);
        i += 2;
        continue;
      }
      char c = text[i];
      LAMELLA_EXPECT((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "letters, got '", text, "'");
      made[n].push_back(c);
    }
    bool fits = n == 2 || static_cast<int64_t>(made[n].size()) == ranks[n];
    LAMELLA_EXPECT(fits, "a letter for each of ", ranks[n], " dimensions, got '", text, "'");
  }
  return made;
}

}  // namespace

StatusOr<std::array<std::vector<int64_t>, 3>> ParseEinsumString(std::string_view einsum_config,
                                                                int64_t x_rank, int64_t y_rank) {
  try {
    return labels_of(einsum_config, x_rank, y_rank);
  } catch (const Error& error) {
    return Status(StatusCode::kInvalidArgument, str("ParseEinsumString: ", error.what()));
  }
}
Op Einsum(Operand x, Op y, std::string_view einsum_config, PrecisionConfig::Precision precision,
          std::optional<PrimitiveType> preferred_element_type) {
  return emit("Einsum", x, [&](Emission& e) {
    Labels labels = labels_of(einsum_config, e.array(x, "x").rank(), e.array(y, "y").rank());
    return Einsum(e.at(x), labels[0], y, labels[1], labels[2], precision, preferred_element_type);
  });
}
Op Einsum(Operand x, std::string_view einsum_config, PrecisionConfig::Precision precision) {
  return emit("Einsum", x, [&](Emission& e) {
    return Einsum(e.at(ScalarLike(e.at(x), 1)), x, str(",", einsum_config), precision);
  });
}
Op Einsum(Operand x, Span<int64_t> x_config, Op y, Span<int64_t> y_config,
          Span<int64_t> output_config, PrecisionConfig::Precision precision,
          std::optional<PrimitiveType> preferred_element_type) {
  return emit("Einsum", x, [&](Emission& e) {
    auto require = [&](std::span<const int64_t> labels, int64_t rank) {
      LAMELLA_EXPECT(static_cast<int64_t>(labels.size()) == rank, "a label for each of ", rank,
                     " dimensions, got ", labels.size());
      for (size_t i = 0; i < labels.size(); ++i) {
        LAMELLA_EXPECT(!contains(labels.first(i), labels[i]), "labels that differ, got ",
                       braced(labels));
      }
    };
    require(x_config, e.array(x, "x").rank());
    require(y_config, e.array(y, "y").rank());
    require(output_config, static_cast<int64_t>(output_config.size()));
    // Dimensions of one operand that the other and the result lack are summed first.
    auto sum_alone = [&](Op op, std::span<const int64_t> labels, std::span<const int64_t> other) {
      std::vector<int64_t> alone, kept;
      for (size_t i = 0; i < labels.size(); ++i) {
        if (contains(other, labels[i]) || contains(output_config, labels[i])) {
          kept.push_back(labels[i]);
        } else {
          alone.push_back(static_cast<int64_t>(i));
        }
      }
      if (!alone.empty()) {
        ElementType type = e.shape(op).element_type();
        op = Reduce(e.at(op), Zero(e.within(), type), CreateScalarAddComputation(type, e.builder()),
                    alone);
      }
      return std::pair(op, kept);
    };
    auto [lhs, left] = sum_alone(x, x_config, y_config);
    auto [rhs, right] = sum_alone(y, y_config, x_config);
    DotDimensionNumbers numbers;
    std::vector<int64_t> made;  // the labels of the product, as a dot gives them
    for (size_t i = 0; i < left.size(); ++i) {
      auto other = std::find(right.begin(), right.end(), left[i]);
      if (other == right.end()) continue;
      auto l = static_cast<int64_t>(i), r = static_cast<int64_t>(other - right.begin());
      if (contains(output_config, left[i])) {
        made.push_back(left[i]);
        numbers.add_lhs_batch_dimensions(l);
        numbers.add_rhs_batch_dimensions(r);
      } else {
        numbers.add_lhs_contracting_dimensions(l);
        numbers.add_rhs_contracting_dimensions(r);
      }
    }
    for (int64_t label : left) {
      if (!contains(right, label)) made.push_back(label);
    }
    for (int64_t label : right) {
      if (!contains(left, label)) made.push_back(label);
    }
    PrecisionConfig config;
    config.add_operand_precision(precision);
    config.add_operand_precision(precision);
    Op product = DotGeneral(e.at(lhs), rhs, numbers, &config, preferred_element_type);
    std::vector<int64_t> order;
    for (int64_t label : output_config) {
      auto at = std::find(made.begin(), made.end(), label);
      LAMELLA_EXPECT(at != made.end(), "labels of the result that an operand has, got ",
                     braced(output_config));
      order.push_back(at - made.begin());
    }
    return std::is_sorted(order.begin(), order.end()) ? product : Transpose(e.at(product), order);
  });
}

Op TransposeInMinorDims(Operand x) {
  return emit("TransposeInMinorDims", x, [&](Emission& e) {
    std::vector<int64_t> order;
    for (int64_t d = 0; d < matrix(e, x).rank(); ++d) order.push_back(d);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return Transpose(e.at(x), order);
  });
}
Op MaybeTransposeInMinorDims(Operand x, bool transpose) {
  return emit("MaybeTransposeInMinorDims", x,
              [&](Emission& e) { return transpose ? TransposeInMinorDims(e.at(x)) : Op(x); });
}

}  // namespace lamella::hlo
