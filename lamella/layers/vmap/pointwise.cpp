// The batching rule of pointwise operators.
//
// Note [Broadcasting and types of examples]
//   Unbatched operands broadcast against batched ones without changes, since the batch is in front.
//   Batched operands of lower rank get dimensions of size 1 behind the batch.
//   Type promotion depends on which operands are 0-dimensional, and here that means their examples:
//   a batched operand with 0-dimensional examples is converted to the type that the others decide
//   on; an unbatched 0-dimensional operand gets a dimension if no example has any.
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

// bool < integral < floating point < complex.
int category(ScalarType type) {
  if (is_complex(type)) return 3;
  if (is_floating_point(type)) return 2;
  return type == ScalarType::Bool ? 0 : 1;
}

// The type to convert a 0-dimensional operand of type `own` to, where the operands with dimensions
// have the common type `type`. Undefined: no conversion.
ScalarType type_among(ScalarType own, ScalarType type) {
  if (own == type || category(own) == 0 || category(own) > category(type)) {
    return ScalarType::Undefined;
  }
  if (category(own) == category(type)) return type;
  return category(type) == 3 && category(own) == 2 ? to_real_type(type) : ScalarType::Undefined;
}

// Dimensions of size 1 behind the batch, up to `rank` of an example.
Tensor with_rank(const Tensor& t, int64_t rank) {
  std::vector<int64_t> sizes{t.size(0)};
  sizes.insert(sizes.end(), static_cast<size_t>(rank + 1 - t.dim()), 1);
  sizes.insert(sizes.end(), t.sizes().begin() + 1, t.sizes().end());
  return t.reshape(sizes);
}

[[gnu::noinline]] void align(BatchedCall& call, int64_t rank, bool mixed_types) {
  const BatchingPlan& plan = call.plan();
  ScalarType type = ScalarType::Undefined;
  for (uint32_t i : plan.facts->tensors) {
    if (!mixed_types || !call.has(i) || call.dim(i) == 0) continue;
    ScalarType own = call.tensor(i).scalar_type();
    type = type == ScalarType::Undefined ? own : promote_types(type, own);
  }
  for (uint32_t i : plan.facts->tensors) {
    if (!call.has(i)) continue;
    Tensor t = call.tensor(i);
    int64_t dims = call.dim(i);
    bool batched = call.is_batched(i);
    bool changed = false;
    if (mixed_types && dims == 0 && batched && type != ScalarType::Undefined &&
        !plan.facts->arguments[i].is_written) {
      ScalarType to = type_among(t.scalar_type(), type);
      if (to != ScalarType::Undefined) t = t.to(to), changed = true;
    }
    if (batched && dims < rank) {
      t = with_rank(t, rank), changed = true;
    } else if (mixed_types && rank == 0 && !batched && !t.is_wrapped_number()) {
      t = t.unsqueeze(0), changed = true;
    }
    if (changed) call.set(i, t, batched);
  }
}

}  // namespace

void pointwise_rule(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  LAMELLA_CHECK_NOT_IMPLEMENTED(!plan.has_list, plan.name,
                                ": is declared pointwise, and has a list of tensors, for which no "
                                "batching rule is known");
  int64_t rank = 0;
  int64_t least_batched = 64;
  int type = -1;
  bool mixed_types = false;
  for (uint32_t i : plan.facts->tensors) {
    if (!call.has(i)) continue;
    int64_t dims = call.dim(i);
    rank = dims > rank ? dims : rank;
    if (call.is_batched(i) && dims < least_batched) least_batched = dims;
    int own = call.value(i).as.tensor->scalar_type;
    mixed_types |= type >= 0 && own != type;
    type = own;
  }
  if (LAMELLA_UNLIKELY(mixed_types || least_batched < rank)) align(call, rank, mixed_types);
  call.run();
}

}  // namespace lamella::vmap
