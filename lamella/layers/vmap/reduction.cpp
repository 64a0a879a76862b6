// The batching rule of operators that reduce dimensions of their first argument.
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

// Reductions over all elements, and the operators over given dimensions that replace them.
struct OverOne {
  std::string_view name;
  const char* other;
  const char* overload;
  bool dim_is_list;
};
constexpr OverOne kOverOne[] = {
    {"aten::sum", "aten::sum", "dim_IntList", true}, {"aten::mean", "aten::mean", "dim", true},
    {"aten::prod", "aten::prod", "dim_int", false},  {"aten::all", "aten::all", "dim", false},
    {"aten::any", "aten::any", "dim", false},        {"aten::max", "aten::amax", "", true},
    {"aten::min", "aten::amin", "", true},
};

// Flattens each example: [batch, elements].
Tensor flat(const BatchedCall& call, uint32_t i) {
  Tensor t = call.tensor(i);
  int64_t elements = 1;  // not -1, which cannot be inferred for an empty batch
  for (int64_t size : t.sizes().slice(1)) elements *= size;
  return t.reshape({call.batch_size(), elements});
}

void fold_all(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  const OperatorEntry* other = plan.over_dims;
  if (other == nullptr || plan.writes()) return loop_rule(call);
  const int64_t dims[] = {1};
  std::vector<IValue> arguments;
  arguments.emplace_back(flat(call, 0));
  arguments.push_back(plan.dims_are_list ? IValue(IntArrayRef(dims, 1)) : IValue(dims[0]));
  arguments.emplace_back(false);
  for (uint32_t i = 1; i < plan.arguments.size(); ++i) {
    arguments.push_back(IValue::from_borrowed(call.value(i)));
  }
  ValueBuffer values(static_cast<uint32_t>(arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i].value();
  lamella_value result;
  lamella::detail::check(lamella_call_boxed(other, values.data(),
                                            static_cast<uint32_t>(arguments.size()), &result, 1));
  call.give(0, IValue::adopt(result).toTensor());
}

}  // namespace

void reduction_rule(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  int named = plan.find("dim");
  if (named < 0) return fold_all(call);
  auto dim = static_cast<uint32_t>(named);
  for (uint32_t i : plan.facts->tensors) {
    if (i != 0 && !plan.facts->arguments[i].is_written && call.is_batched(i))
      return loop_rule(call);
  }
  int keep = plan.find("keepdim");
  bool keepdim = keep >= 0 && call.flag(static_cast<uint32_t>(keep));
  int64_t rank = call.dim(0);
  if (rank == 0) call.set(0, call.tensor(0).unsqueeze(1));

  const lamella_value& given = call.value(dim);
  bool everything = given.tag == LAMELLA_NONE;
  // An empty list of dimensions reduces all of them, except for all() and any(), which then reduce
  // none.
  bool is_list = plan.facts->arguments[dim].is_list;
  bool empty = given.tag == LAMELLA_INT_LIST && given.size == 0;
  if (empty && plan.name != "all" && plan.name != "any") everything = true;

  if (is_list) {
    std::vector<int64_t> dims;
    if (everything) {
      for (int64_t d = 1; d <= (rank > 0 ? rank : 1); ++d) dims.push_back(d);
    } else {
      for (int64_t d : call.integers(dim)) dims.push_back(call.shifted(d, rank));
    }
    call.set_value(dim, IValue(dims));
  } else if (everything) {
    call.set(0, flat(call, 0));
    call.set_value(dim, IValue(int64_t{1}));
  } else {
    call.set_value(dim, IValue(call.shifted(call.integer(dim), rank)));
  }

  bool flattened_with_dims = !is_list && everything && keepdim && rank != 1;
  if (plan.writes() || (!flattened_with_dims && !(rank == 0 && (keepdim || empty)))) {
    return call.run();
  }
  call.run_and([&](const Tensor& result) {
    std::vector<int64_t> sizes(static_cast<size_t>(rank + 1), 1);
    sizes[0] = call.batch_size();
    return result.reshape(sizes);
  });
}

}  // namespace lamella::vmap
