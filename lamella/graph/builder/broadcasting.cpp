// Implicit broadcasting.
#include "lamella/graph/builder/broadcasting.h"

#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {

Op broadcast_scalar(Emission& e, Op op, std::span<const int64_t> sizes) {
  const Shape& shape = e.shape(op);
  if (!shape.is_scalar() || sizes.empty()) return op;
  return broadcast_in_dim(e, op, sizes, {});
}

Op broadcast_in_dim(Emission& e, Op op, std::span<const int64_t> sizes,
                    std::span<const int64_t> dimensions) {
  const Shape operand = e.array(op, "operand");
  auto rank = static_cast<int64_t>(sizes.size());
  LAMELLA_EXPECT(static_cast<int64_t>(dimensions.size()) == operand.rank(),
                 "'broadcast_dimensions' to name ", operand.rank(), " dimensions, got ",
                 braced(dimensions));
  std::vector<int64_t> kept_sizes, kept;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    LAMELLA_EXPECT(
        dimensions[d] >= 0 && dimensions[d] < rank && (d == 0 || dimensions[d] > dimensions[d - 1]),
        "'broadcast_dimensions' to ascend below ", rank, ", got ", braced(dimensions));
    int64_t from = operand.dimensions()[d], to = sizes[static_cast<size_t>(dimensions[d])];
    LAMELLA_EXPECT(from == to || from == 1, "dimension ", d, " of ", operand.to_string(false),
                   " to be 1 or ", to, " as dimension ", dimensions[d], " of the result, got ",
                   from);
    if (from != to) continue;
    kept_sizes.push_back(from);
    kept.push_back(dimensions[d]);
  }
  if (kept.size() < dimensions.size()) {
    op = e.add(Opcode::Reshape, {op}, e.attributes(), operand.with_dimensions(kept_sizes));
  }
  AttributeList attributes = e.attributes();
  attributes.integers(AttributeKey::Dimensions, kept);
  return e.add(Opcode::Broadcast, {op}, std::move(attributes),
               Shape::array(operand.element_type(), {sizes.begin(), sizes.end()}));
}

std::pair<Op, Op> broadcast_together(Emission& e, Op lhs, Op rhs,
                                     std::span<const int64_t> broadcast_dimensions) {
  const Shape left = e.array(lhs, "lhs"), right = e.array(rhs, "rhs");
  LAMELLA_EXPECT(left.element_type() == right.element_type(),
                 "'lhs' and 'rhs' of one element type, got ", left.to_string(false), " and ",
                 right.to_string(false));
  bool left_wider = left.rank() >= right.rank();
  const Shape& wide = left_wider ? left : right;
  const Shape& narrow = left_wider ? right : left;
  std::vector<int64_t> identity;
  for (int64_t d = 0; d < wide.rank(); ++d) identity.push_back(d);
  std::vector<int64_t> map(broadcast_dimensions.begin(), broadcast_dimensions.end());
  if (left.rank() == right.rank()) {
    LAMELLA_EXPECT(map.empty() || map == identity, "'broadcast_dimensions' to be empty or ",
                   braced(identity), " for operands of one rank, got ", braced(map));
    if (left.same_dimensions(right)) return {lhs, rhs};
    map = identity;
  } else {
    LAMELLA_EXPECT(static_cast<int64_t>(map.size()) == narrow.rank(),
                   "'broadcast_dimensions' to say how the dimensions of ", narrow.to_string(false),
                   " match those of ", wide.to_string(false), ", got ", braced(map));
  }
  std::vector<int64_t> sizes = copy_of(wide.dimensions());
  for (size_t d = 0; d < map.size(); ++d) {
    LAMELLA_EXPECT(map[d] >= 0 && map[d] < wide.rank() && (d == 0 || map[d] > map[d - 1]),
                   "'broadcast_dimensions' to ascend below ", wide.rank(), ", got ", braced(map));
    int64_t& size = sizes[static_cast<size_t>(map[d])];
    int64_t other = narrow.dimensions()[d];
    LAMELLA_EXPECT(size == other || size == 1 || other == 1,
                   "'lhs' and 'rhs' of dimensions that match or are 1, got ", left.to_string(false),
                   " and ", right.to_string(false));
    if (size == 1) size = other;
  }
  auto fit = [&](Op op, const Shape& shape, std::span<const int64_t> dimensions) {
    if (std::ranges::equal(shape.dimensions(), sizes)) return op;
    return broadcast_in_dim(e, op, sizes, dimensions);
  };
  return {fit(lhs, left, left_wider ? identity : map),
          fit(rhs, right, left_wider ? map : identity)};
}

}  // namespace lamella::hlo
