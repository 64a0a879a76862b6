// Dot, ragged-dot and scaled-dot.
#include <algorithm>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/contraction.h"
#include "lamella/graph/evaluate/elements.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

// A list of dimensions of an operand: their sizes, and the offset of each index over them.
struct Part {
  Numbers sizes;
  Numbers offsets;

  Part(const Shape& shape, std::span<const int64_t> dimensions) {
    Numbers strides = row_major_strides(shape.dimensions()), chosen;
    for (int64_t d : dimensions) {
      sizes.push_back(shape.dimension(d));
      chosen.push_back(strides[static_cast<size_t>(d)]);
    }
    offsets = offsets_of(sizes, chosen);
  }
  size_t count() const { return offsets.size(); }
};
Numbers others(const Shape& shape, std::initializer_list<std::span<const int64_t>> but) {
  Numbers rest;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    bool named = false;
    for (auto list : but) named = named || contains(list, d);
    if (!named) rest.push_back(d);
  }
  return rest;
}

// The batch, free and contracting dimensions of both operands of a product.
struct Product {
  std::span<const int64_t> left_sums, right_sums, left_batches, right_batches;
  Numbers left_frees, right_frees;
  Part left_batch, left_free, left_sum, right_batch, right_free, right_sum;

  // `groups` are dimensions of the right operand that are indexed by the group.
  explicit Product(const Instruction& i, std::span<const int64_t> groups = {})
      : left_sums(i.integers(AttributeKey::LhsContractingDims)),
        right_sums(i.integers(AttributeKey::RhsContractingDims)),
        left_batches(i.integers(AttributeKey::LhsBatchDims)),
        right_batches(i.integers(AttributeKey::RhsBatchDims)),
        left_frees(others(i.operand_shape(0), {left_sums, left_batches})),
        right_frees(others(i.operand_shape(1), {right_sums, right_batches, groups})),
        left_batch(i.operand_shape(0), left_batches),
        left_free(i.operand_shape(0), left_frees),
        left_sum(i.operand_shape(0), left_sums),
        right_batch(i.operand_shape(1), right_batches),
        right_free(i.operand_shape(1), right_frees),
        right_sum(i.operand_shape(1), right_sums) {}
};

// Adds one row: sums[n] += left[k] * right[k, n] for all k with takes(k).
template <class Wide, class Takes>
void add_row(const Product& p, const Wide* left, const Wide* right, Wide* sums, Takes&& takes) {
  for (size_t k = 0; k < p.left_sum.count(); ++k) {
    if (!takes(k)) continue;
    count_steps(static_cast<int64_t>(p.right_free.count()));
    Wide factor = left[p.left_sum.offsets[k]];
    const Wide* row = right + p.right_sum.offsets[k];
    for (size_t n = 0; n < p.right_free.count(); ++n) {
      sums[n] += factor * row[p.right_free.offsets[n]];
    }
  }
}

template <class Wide>
void dot_into(const Product& p, const std::vector<Wide>& left, const std::vector<Wide>& right,
              const Value& result) {
  std::vector<Wide> sums(static_cast<size_t>(result.shape().elements()));
  Wide* row = sums.data();
  for (size_t b = 0; b < p.left_batch.count(); ++b) {
    for (size_t m = 0; m < p.left_free.count(); ++m, row += p.right_free.count()) {
      add_row(p, left.data() + p.left_batch.offsets[b] + p.left_free.offsets[m],
              right.data() + p.right_batch.offsets[b], row, [](size_t) { return true; });
    }
  }
  store_wide(sums, result);
}

// Throws if the result has integers but an operand does not have integers or PRED.
void require_integers(const Step& step) {
  const Instruction& i = step.instruction;
  for (size_t n = 0; n < 2; ++n) {
    ElementType type = i.operand_shape(n).element_type();
    LAMELLA_HLO_REQUIRE(
        !is_integral(step.shape().element_type()) || is_integral(type) || type == ElementType::PRED,
        i, "expected operand ", n, " to hold integers as the result does, got ",
        element_name(type));
  }
}

}  // namespace

Value evaluate_dot(Step& step) {
  require_integers(step);
  Product p(step.instruction);
  Value result = step.result();
  visit_wide(step.shape().element_type(), [&]<class Wide>() {
    dot_into(p, widened<Wide>(step.operands[0]), widened<Wide>(step.operands[1]), result);
  });
  return result;
}

namespace {

// Multiplies each element by the scale of its block. Along each dimension, a block has
// (operand size / scale size) elements.
template <class Wide>
void scale_blocks(std::vector<Wide>& all, const Shape& shape, const Value& scale) {
  std::vector<Wide> scales = widened<Wide>(scale);
  Numbers strides = row_major_strides(scale.shape().dimensions());
  size_t e = 0;
  for (Counter at(shape.dimensions()); at.valid(); at.next(), ++e) {
    int64_t place = 0;
    for (int64_t d = 0; d < scale.shape().rank(); ++d) {
      auto n = static_cast<size_t>(d);
      place += at[n] * scale.shape().dimension(d) / shape.dimension(d) * strides[n];
    }
    all[e] = all[e] * scales[static_cast<size_t>(place)];
  }
}

}  // namespace

Value evaluate_scaled_dot(Step& step) {
  require_integers(step);
  Product p(step.instruction);
  Value result = step.result();
  visit_wide(step.shape().element_type(), [&]<class Wide>() {
    std::vector<Wide> sides[2];
    for (size_t s = 0; s < 2; ++s) {
      sides[s] = widened<Wide>(step.operands[s]);
      scale_blocks(sides[s], step.operands[s].shape(), step.operands[2 + s]);
    }
    dot_into(p, sides[0], sides[1], result);
  });
  return result;
}

namespace {

// Note [Groups]
//   A ragged dimension of the left operand is divided into consecutive groups whose sizes are in
//   operand 2. If it is a free dimension, each group is multiplied by its own matrix of the right
//   operand (rhs_group_dims). If it is contracted, each group gives a separate result, along a new
//   leading dimension. If it is a batch dimension, groups have no effect. There is one list of
//   sizes for all, or one for each index of the preceding dimensions: batch dimensions, then those
//   of the ragged dimension's kind. Elements in no group give zero.
class Groups {
 public:
  explicit Groups(const Value& sizes)
      : count_(sizes.shape().dimension(sizes.shape().rank() - 1)),
        prefix_rank_(static_cast<size_t>(sizes.shape().rank() - 1)),
        prefix_strides_(row_major_strides(sizes.shape().dimensions())) {
    prefix_strides_.pop_back();
    visit_integers(sizes.shape().element_type(), [&]<class Number>() {
      for (int64_t e = 0; e < sizes.shape().elements(); ++e) {
        // Negative sizes count as 0, and large ones are clamped so that sums fit int64_t.
        auto size = load_wide<Number>(sizes.data(), e);
        int64_t most = kMostElements / std::max<int64_t>(count_, 1);
        if (size > 0) {
          sizes_.push_back(static_cast<int64_t>(
              std::min<uint64_t>(static_cast<uint64_t>(size), static_cast<uint64_t>(most))));
        } else {
          sizes_.push_back(0);
        }
      }
    });
  }
  int64_t count() const { return count_; }
  // The group that contains the position, or -1. `before` is the index over preceding dimensions.
  int64_t find(const Numbers& before, int64_t place) const {
    int64_t list = 0, end = 0;
    for (size_t d = 0; d < prefix_rank_; ++d) list += before[d] * prefix_strides_[d];
    for (int64_t g = 0; g < count_; ++g) {
      end += sizes_[static_cast<size_t>(list + g)];
      if (place < end) return g;
    }
    return -1;
  }

 private:
  int64_t count_;
  size_t prefix_rank_;
  Numbers prefix_strides_;
  Numbers sizes_;
};

// Converts a row-major position to an index over `sizes`.
Numbers index_at(const Numbers& sizes, size_t place) {
  Numbers index(sizes.size());
  auto rest = static_cast<int64_t>(place);
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  return index;
}

}  // namespace

Value evaluate_ragged_dot(Step& step) {
  require_integers(step);
  const Instruction& i = step.instruction;
  auto group_dimensions = i.integers(AttributeKey::RhsGroupDims);
  int64_t ragged = i.integers(AttributeKey::LhsRaggedDims)[0];
  Product p(i, group_dimensions);
  Groups groups(step.operands[2]);
  auto place_in = [&](std::span<const int64_t> list) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), ragged) - list.begin());
  };
  auto join = [](Numbers a, const Numbers& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  Value result = step.result();
  visit_wide(step.shape().element_type(), [&]<class Wide>() {
    std::vector<Wide> left = widened<Wide>(step.operands[0]);
    std::vector<Wide> right = widened<Wide>(step.operands[1]);
    std::vector<Wide> sums(static_cast<size_t>(result.shape().elements()));
    Wide* row = sums.data();
    bool summed = contains(p.left_sums, ragged), batched = contains(p.left_batches, ragged);
    int64_t group_stride =
        group_dimensions.empty()
            ? 0
            : row_major_strides(
                  i.operand_shape(1).dimensions())[static_cast<size_t>(group_dimensions[0])];
    for (int64_t g = 0; g < (summed ? groups.count() : 1); ++g) {
      for (size_t b = 0; b < p.left_batch.count(); ++b) {
        Numbers batch = index_at(p.left_batch.sizes, b);
        std::vector<bool> takes(p.left_sum.count(), true);
        for (size_t k = 0; summed && k < takes.size(); ++k) {
          Numbers index = index_at(p.left_sum.sizes, k);
          takes[k] = groups.find(join(batch, index), index[place_in(p.left_sums)]) == g;
        }
        for (size_t m = 0; m < p.left_free.count(); ++m, row += p.right_free.count()) {
          const Wide* from = right.data() + p.right_batch.offsets[b];
          if (batched && groups.find(batch, batch[place_in(p.left_batches)]) < 0) continue;
          if (!summed && !batched) {
            Numbers index = index_at(p.left_free.sizes, m);
            int64_t group = groups.find(join(batch, index), index[place_in(p.left_frees)]);
            if (group < 0) continue;
            from += group * group_stride;
          }
          add_row(p, left.data() + p.left_batch.offsets[b] + p.left_free.offsets[m], from, row,
                  [&](size_t k) { return takes[k]; });
        }
      }
    }
    store_wide(sums, result);
  });
  return result;
}

}  // namespace lamella::hlo
