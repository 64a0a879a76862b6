// Sort and top-k.
#include <algorithm>
#include <numeric>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/scalar_call.h"

namespace lamella::hlo {
namespace {

// A stable merge sort of runs of doubling length. Unlike the standard library's sorts it stays in
// bounds for any comparator. less(a, b) is called with elements of `order`.
template <class Less>
void merge_sort(std::vector<int64_t>& order, Less&& less) {
  auto size = static_cast<int64_t>(order.size());
  std::vector<int64_t> merged(order.size());
  for (int64_t run = 1; run < size; run *= 2) {
    for (int64_t start = 0; start < size; start += 2 * run) {
      int64_t left = start, middle = std::min(start + run, size), right = middle;
      int64_t end = std::min(start + 2 * run, size);
      for (int64_t out = start; out < end; ++out) {
        count_steps(8);
        bool take_right = left == middle || (right < end && less(order[static_cast<size_t>(right)],
                                                                 order[static_cast<size_t>(left)]));
        merged[static_cast<size_t>(out)] =
            order[static_cast<size_t>(take_right ? right++ : left++)];
      }
    }
    order.swap(merged);
  }
}

}  // namespace

Value evaluate_sort(Step& step) {
  const Instruction& i = step.instruction;
  const Shape& shape = step.operands[0].shape();
  int64_t dimension = i.integers(AttributeKey::Dimensions)[0];
  std::vector<int64_t> strides = row_major_strides(shape.dimensions());
  int64_t stride = strides[static_cast<size_t>(dimension)];
  std::vector<int64_t> others = copy_of(shape.dimensions());
  if (shape.elements() != 0) others[static_cast<size_t>(dimension)] = 1;

  std::vector<Value> results = make_results(step);
  ScalarCall call(*i.computation(AttributeKey::ToApply), step.run);
  std::vector<Elements> from(step.operands.begin(), step.operands.end());
  std::vector<Elements> into(results.begin(), results.end());
  std::vector<const void*> pairs(2 * from.size());
  std::vector<int64_t> order(static_cast<size_t>(shape.dimension(dimension)));
  for (Counter row(others); row.valid(); row.next()) {
    int64_t start = place_of(row.index(), strides);
    std::iota(order.begin(), order.end(), 0);
    merge_sort(order, [&](int64_t a, int64_t b) {
      for (size_t n = 0; n < from.size(); ++n) {
        pairs[2 * n] = from[n].at(start + a * stride);
        pairs[2 * n + 1] = from[n].at(start + b * stride);
      }
      return call.test(pairs);
    });
    for (size_t n = 0; n < from.size(); ++n) {
      for (size_t k = 0; k < order.size(); ++k) {
        std::memcpy(into[n].at(start + static_cast<int64_t>(k) * stride),
                    from[n].at(start + order[k] * stride), into[n].size);
      }
    }
  }
  return join_results(step, results);
}

// The k largest or smallest elements along the last dimension; among equal elements, lower indices
// come first. NaN counts as the largest, as in a total order.
Value evaluate_top_k(Step& step) {
  const Instruction& i = step.instruction;
  const Shape& shape = step.operands[0].shape();
  int64_t size = shape.dimension(shape.rank() - 1);
  int64_t k = step.shape().tuple_shapes()[0].dimensions().back();
  bool largest = i.flag(AttributeKey::Largest, true);
  std::vector<Value> results = make_results(step);
  Elements from(step.operands[0]), into(results[0]);
  auto* indices = static_cast<int32_t*>(results[1].data());
  int64_t rows = size == 0 ? 0 : shape.elements() / size;
  visit_numbers(shape.element_type(), [&]<class Number>() {
    if constexpr (!std::is_arithmetic_v<typename Number::Work>) {
      fail(i, "expected numbers that have an order, got ", element_name(shape.element_type()));
    } else {
      using Key = decltype(total_order(Number::load(from.data, 0)));
      std::vector<std::pair<Key, int64_t>> order(static_cast<size_t>(size));
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t n = 0; n < size; ++n) {
          order[static_cast<size_t>(n)] = {total_order(Number::load(from.data, row * size + n)), n};
        }
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](auto& a, auto& b) {
          if (a.first != b.first) return largest ? a.first > b.first : a.first < b.first;
          return a.second < b.second;
        });
        count_steps(2 * size);
        for (int64_t n = 0; n < k; ++n) {
          int64_t at = order[static_cast<size_t>(n)].second;
          std::memcpy(into.at(row * k + n), from.at(row * size + at), into.size);
          indices[row * k + n] = static_cast<int32_t>(at);
        }
      }
    }
  });
  return join_results(step, results);
}

// Custom calls to "TopK" have a computation that compares two elements, and mean the same.
bool is_top_k_call(const Instruction& i) {
  if (i.opcode != Opcode::CustomCall || i.text(AttributeKey::CustomCallTarget) != "TopK") {
    return false;
  }
  const std::vector<Shape>& parts = i.shape->tuple_shapes();
  bool fits = i.operands.size() == 1 && i.operand_shape(0).is_array() && parts.size() == 2 &&
              parts[0].is_array() && i.operand_shape(0).rank() > 0 &&
              parts[0].rank() == i.operand_shape(0).rank();
  if (fits) {
    std::vector<int64_t> sizes = copy_of(i.operand_shape(0).dimensions());
    int64_t k = parts[0].dimensions().back();
    fits = k <= sizes.back();
    sizes.back() = k;
    fits &= parts[0].compatible(Shape::array(i.operand_shape(0).element_type(), sizes)) &&
            parts[1].compatible(Shape::array(ElementType::S32, sizes));
  }
  LAMELLA_HLO_REQUIRE(fits, i, "expected an array, and its k greatest elements with their s32 ",
                      "indices as the result, got ", i.shape->to_string(false));
  const Attribute* called = i.find(AttributeKey::CalledComputations);
  const Computation* compares = i.computation(AttributeKey::ToApply);
  if (called != nullptr && !called->computations().empty()) compares = called->computations()[0];
  bool greatest = compares == nullptr || compares->root->opcode != Opcode::Compare ||
                  compares->root->text(AttributeKey::Direction) == "GT" ||
                  compares->root->text(AttributeKey::Direction) == "GE";
  LAMELLA_HLO_REQUIRE(greatest, i, "expected a computation that finds the greater element, got ",
                      "direction=", compares->root->text(AttributeKey::Direction));
  return true;
}

}  // namespace lamella::hlo
