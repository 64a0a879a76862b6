// Decompositions of matrices and solvers.
#include "lamella/graph/builder/lib/decompositions.h"

#include <algorithm>
#include <array>
#include <limits>

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/lib/arithmetic.h"
#include "lamella/graph/builder/lib/constants.h"
#include "lamella/graph/builder/lib/loops.h"
#include "lamella/graph/builder/lib/matrix.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// The shapes of the arrays that a decomposition gives.
class Sizes {
 public:
  Sizes(Emission& e, Op a, bool square) : shape_(e.array(a, "a")) {
    LAMELLA_EXPECT(shape_.rank() >= 2 && (!square || m() == n()), "'a' to be ",
                   square ? "square " : "", "matrices, got ", shape_.to_string(false));
  }
  int64_t m() const { return shape_.dimension(shape_.rank() - 2); }
  int64_t n() const { return shape_.dimension(shape_.rank() - 1); }
  int64_t least() const { return std::min(m(), n()); }
  const Shape& whole() const { return shape_; }
  // An array of each batch, of a's type or of another.
  Shape of(std::initializer_list<int64_t> sizes) const { return of(shape_.element_type(), sizes); }
  Shape of(ElementType type, std::initializer_list<int64_t> sizes) const {
    std::vector<int64_t> all =
        copy_of(shape_.dimensions().first(static_cast<size_t>(shape_.rank() - 2)));
    all.insert(all.end(), sizes);
    return Shape::array(type, std::move(all));
  }
  // The type of singular values, eigenvalues and magnitudes.
  ElementType real() const {
    ElementType type = shape_.element_type();
    return is_complex(type) ? part_of_complex(type) : type;
  }

 private:
  Shape shape_;
};

// The elements of the tuple that `make` gives. In case of an error all of them are invalid.
template <size_t N, class F>
std::array<Op, N> parts(const char* function, const Operand& a, F&& make) {
  std::array<Op, N> made;
  Op last = emit(function, a, [&](Emission& e) {
    Op tuple = make(e);
    for (size_t n = 0; n < N; ++n) {
      made[n] = GetTupleElement(e.at(tuple), static_cast<int64_t>(n));
    }
    return made[N - 1];
  });
  if (!last.valid()) made.fill(last);
  return made;
}

}  // namespace

QrDecomposition Qr(Operand a) {
  auto [q_and_r, taus] = parts<2>("Qr", a, [&](Emission& e) {
    Sizes s(e, a, false);
    return CustomCall(e.within(), "aten::geqrf", {a}, Shape::tuple({s.whole(), s.of({s.least()})}));
  });
  return {q_and_r, taus};
}
Op ProductOfElementaryHouseholderReflectors(Operand a, Op taus) {
  return emit("ProductOfElementaryHouseholderReflectors", a, [&](Emission& e) {
    Sizes s(e, a, false);
    return CustomCall(e.within(), "aten::linalg_householder_product", {a, taus}, s.whole());
  });
}
void QrExplicit(Operand a, bool full_matrices, Op& q, Op& r) {
  auto [made_q, made_r] = parts<2>("QrExplicit", a, [&](Emission& e) {
    Sizes s(e, a, false);
    int64_t columns = full_matrices ? s.m() : s.least();
    return CustomCall(e.within(), "aten::linalg_qr", {a},
                      Shape::tuple({s.of({s.m(), columns}), s.of({columns, s.n()})}),
                      full_matrices ? "\"complete\"" : "\"reduced\"");
  });
  q = made_q;
  r = made_r;
}
SVDResult SVD(Operand a, int64_t, float, PrecisionConfig::Precision) {
  auto [u, d, v] = parts<3>("SVD", a, [&](Emission& e) {
    Sizes s(e, a, false);
    Op made = CustomCall(
        e.within(), "aten::_linalg_svd", {a},
        Shape::tuple({s.of({s.m(), s.m()}), s.of(s.real(), {s.least()}), s.of({s.n(), s.n()})}),
        "True, True");
    Op adjoint = GetTupleElement(e.at(made), 2);
    return Tuple(e.within(), {GetTupleElement(e.at(made), 0), GetTupleElement(e.at(made), 1),
                              Conj(e.at(TransposeInMinorDims(e.at(adjoint))))});
  });
  return {u, d, v};
}
SelfAdjointEigResult SelfAdjointEig(Operand a, bool lower, int64_t, float, bool) {
  auto [w, v] = parts<2>("SelfAdjointEig", a, [&](Emission& e) {
    Sizes s(e, a, true);
    return CustomCall(e.within(), "aten::linalg_eigh", {a},
                      Shape::tuple({s.of(s.real(), {s.n()}), s.whole()}),
                      lower ? "\"L\"" : "\"U\"");
  });
  return {v, w};
}
LuDecompositionResult LuDecomposition(Operand a) {
  auto [lu, pivots, permutation] = parts<3>("LuDecomposition", a, [&](Emission& e) {
    Sizes s(e, a, false);
    Shape places = s.of(ElementType::S32, {s.least()});
    Op made = CustomCall(e.within(), "aten::linalg_lu_factor_ex", {a},
                         Shape::tuple({s.whole(), places, s.of(ElementType::S32, {})}));
    Op both = GetTupleElement(e.at(made), 0), rows = GetTupleElement(e.at(made), 1);  // from 1
    Shape none = Shape::array(s.whole().element_type(), {0});
    Op unpacked = CustomCall(e.within(), "aten::lu_unpack", {both, rows},
                             Shape::tuple({s.of({s.m(), s.m()}), none, none}), "False, True");
    Op exchanges = Real(e.at(GetTupleElement(e.at(unpacked), 0)));
    Op order = ArgMax(e.at(exchanges), ElementType::S32, static_cast<int>(s.whole().rank() - 2));
    return Tuple(e.within(), {both, Sub(e.at(rows), ScalarLike(e.at(rows), 1)), order});
  });
  return {lu, pivots, permutation};
}
SignAndLogDet SLogDet(Operand a) {
  auto [sign, logdet] = parts<2>("SLogDet", a, [&](Emission& e) {
    Sizes s(e, a, true);
    Op made = CustomCall(
        e.within(), "aten::_linalg_slogdet", {a},
        Shape::tuple({s.of({}), s.of(s.real(), {}), s.whole(), s.of(ElementType::S32, {s.n()})}));
    return Tuple(e.within(), {GetTupleElement(e.at(made), 0), GetTupleElement(e.at(made), 1)});
  });
  return {sign, logdet};
}
Op LogDet(Operand a) {
  return emit("LogDet", a, [&](Emission& e) {
    SignAndLogDet both = SLogDet(e.at(a));
    Op nan = FullLike(e.at(both.logdet), std::numeric_limits<double>::quiet_NaN());
    return Select(e.at(Ge(e.at(both.sign), ZerosLike(e.at(both.sign)))), both.logdet, nan);
  });
}

namespace tridiagonal {
namespace {

StatusOr<Op> checked(const char* function, Op main, const auto& make) {
  Op made = emit(function, Operand(main), [&](Emission& e) { return make(e); });
  if (made.valid() || made.builder() == nullptr) return made;
  return made.builder()->first_error();
}
// The diagonal with zero as this element.
Op without(Emission& e, Op diagonal, int64_t element) {
  const Shape& shape = e.array(diagonal, "diagonal");
  Op place = Iota(e.within(), Shape::array(ElementType::S32, copy_of(shape.dimensions())),
                  shape.rank() - 1);
  return Select(
      e.at(Eq(e.at(place), ConstantR0<int32_t>(e.within(), static_cast<int32_t>(element)))),
      ZerosLike(e.at(diagonal)), diagonal);
}
// Column i of the last dimension, and the array with another column there.
Op column(Op array, Op i) {
  int64_t rank = array.builder()->GetShape(array)->rank();
  std::vector<Op> starts(static_cast<size_t>(rank), ScalarLike(i, 0));
  starts.back() = i;
  std::vector<int64_t> sizes = copy_of(array.builder()->GetShape(array)->dimensions());
  sizes.back() = 1;
  return DynamicSlice(array, starts, sizes);
}
Op with_column(Op array, Op i, Op value) {
  std::vector<Op> starts(static_cast<size_t>(array.builder()->GetShape(array)->rank()),
                         ScalarLike(i, 0));
  starts.back() = i;
  return DynamicUpdateSlice(array, value, starts);
}
// A column of a diagonal for each column of the right-hand side.
Op spread(Op one, Op like) {
  StatusOr<Shape> shape = like.builder()->GetShape(like);
  std::vector<int64_t> dimensions;
  for (int64_t d = 0; d < shape->rank(); ++d) {
    if (d != shape->rank() - 2) dimensions.push_back(d);
  }
  std::vector<int64_t> sizes;
  for (int64_t d : dimensions) sizes.push_back(shape->dimension(d));
  return BroadcastInDim(Reshape(one, sizes), shape->dimensions(), dimensions);
}

}  // namespace

// Thomas's algorithm: elimination from the first equation on, then substitution from the last.
StatusOr<Op> TridiagonalSolver(SolverAlgorithm, Op lower_diagonal, Op main_diagonal,
                               Op upper_diagonal, Op rhs) {
  return checked("TridiagonalSolver", main_diagonal, [&](Emission& e) {
    const Shape shape = e.array(rhs, "rhs");
    int64_t rank = shape.rank(), m = rank >= 2 ? shape.dimension(rank - 1) : 0;
    std::vector<int64_t> sizes = copy_of(shape.dimensions());
    if (rank >= 2) sizes[static_cast<size_t>(rank - 2)] = 1;
    for (Op one : {lower_diagonal, main_diagonal, upper_diagonal}) {
      bool fits =
          rank >= 2 && m > 0 && e.array(one, "diagonal").compatible(shape.with_dimensions(sizes));
      LAMELLA_EXPECT(fits, "diagonals of ", shape.with_dimensions(sizes).to_string(false),
                     " for 'rhs' of ", shape.to_string(false), ", got ",
                     e.shape(one).to_string(false));
    }
    Op lower = without(e, lower_diagonal, 0), upper = without(e, upper_diagonal, m - 1);
    auto eliminate = [](Op i, Span<Op> v, Builder*) -> StatusOr<std::vector<Op>> {
      Op before = Max(i - ScalarLike(i, 1), ScalarLike(i, 0));
      Op below = column(v[0], i);
      Op pivot = column(v[1], i) - below * column(v[3], before);
      Op known = column(v[4], i);
      Op rest = column(v[5], before) * spread(below, known);
      return std::vector<Op>{v[0], v[1],
                             v[2], with_column(v[3], i, column(v[2], i) / pivot),
                             v[4], with_column(v[5], i, (known - rest) / spread(pivot, known))};
    };
    auto none = [&](Op like) { return ZerosLike(e.at(like)); };
    auto reduced = ForEachIndex(m, ElementType::S32, eliminate,
                                {lower, main_diagonal, upper, none(upper), rhs, none(rhs)},
                                "eliminate", e.builder())
                       .value();
    auto substitute = [m](Op j, Span<Op> v, Builder*) -> StatusOr<std::vector<Op>> {
      Op last = ScalarLike(j, m - 1), i = last - j;
      Op after = Min(i + ScalarLike(i, 1), last);
      Op known = column(v[1], i);
      Op value = known - spread(column(v[0], i), known) * column(v[2], after);
      return std::vector<Op>{v[0], v[1], with_column(v[2], i, value)};
    };
    return ForEachIndex(m, ElementType::S32, substitute, {reduced[3], reduced[5], none(rhs)},
                        "substitute", e.builder())
        .value()[2];
  });
}
StatusOr<Op> TridiagonalSolver(SolverAlgorithm algorithm, Op diagonals, Op rhs) {
  return checked("TridiagonalSolver", diagonals, [&](Emission& e) {
    const Shape& shape = e.array(diagonals, "diagonals");
    LAMELLA_EXPECT(shape.rank() >= 2 && shape.dimension(shape.rank() - 2) == 3,
                   "'diagonals' of 3 rows, got ", shape.to_string(false));
    auto row = [&](int64_t n) {
      return SliceInDim(e.at(diagonals), n, n + 1, 1, shape.rank() - 2);
    };
    Op turned = TransposeInMinorDims(e.at(rhs));
    Op solved = TridiagonalSolver(algorithm, row(2), row(1), row(0), turned).value();
    return TransposeInMinorDims(e.at(solved));
  });
}
StatusOr<Op> TridiagonalMatMul(Op upper_diagonal, Op main_diagonal, Op lower_diagonal, Op rhs) {
  return checked("TridiagonalMatMul", main_diagonal, [&](Emission& e) {
    const Shape& shape = e.array(rhs, "rhs");
    LAMELLA_EXPECT(shape.rank() >= 2, "'rhs' to be matrices, got ", shape.to_string(false));
    int64_t rows = shape.rank() - 2, m = shape.dimension(rows);
    Op zero = Zero(e.within(), shape.element_type());
    auto product = [&](Op diagonal, int64_t shift, int64_t unused) {
      Op kept = unused < 0 ? diagonal : without(e, diagonal, unused);
      Op moved = PadInDim(e.at(rhs), zero, rows, -shift, shift);
      std::vector<int64_t> dimensions;
      for (int64_t d = 0; d < shape.rank() - 1; ++d) dimensions.push_back(d);
      std::vector<int64_t> sizes = copy_of(shape.dimensions().first(dimensions.size()));
      Op spread_out =
          BroadcastInDim(e.at(Reshape(e.at(kept), sizes)), shape.dimensions(), dimensions);
      return Mul(e.at(spread_out), moved);
    };
    Op sum = Add(e.at(product(main_diagonal, 0, -1)), product(upper_diagonal, 1, m - 1));
    return Add(e.at(sum), product(lower_diagonal, -1, 0));
  });
}

}  // namespace tridiagonal
}  // namespace lamella::hlo
