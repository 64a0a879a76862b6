// Helpers that the families of batching rules share: inputs, alignment, and changed calls.
#include "lamella/layers/vmap/rules_common.h"

#include "lamella/layers/vmap/rules_table.h"

namespace lamella::vmap {

int64_t In::size(int64_t dim) const {
  IntArrayRef all = sizes();
  return all[static_cast<size_t>(maybe_wrap_dim(dim, rank(), "size"))];
}
int64_t In::numel() const {
  int64_t n = 1;
  for (int64_t size : sizes()) n *= size;
  return n;
}

std::vector<In> inputs(const BatchedCall& call, uint32_t index) {
  std::vector<In> result;
  if (call.value(index).tag != LAMELLA_TENSOR_LIST) return result;
  for (uint32_t k = 0; k < call.value(index).size; ++k) {
    result.push_back({call.tensor(index, k), call.is_batched(index, k)});
  }
  return result;
}

Tensor front(const BatchedCall& call, const In& x) {
  if (x.batched || !x.defined()) return x.value;
  return x.value.expand(with_batch(call, x.value.sizes()));
}
Tensor front(const BatchedCall& call, const In& x, int64_t rank) {
  return aligned({front(call, x), true}, rank);
}
Tensor aligned(const In& x, int64_t rank) {
  if (!x.batched || x.rank() >= rank) return x.value;
  Sizes sizes{x.value.size(0)};
  sizes.resize(static_cast<size_t>(1 + rank - x.rank()), 1);
  for (int64_t size : x.sizes()) sizes.push_back(size);
  return x.value.view(sizes);
}
Sizes with_batch(const BatchedCall& call, IntArrayRef sizes) {
  Sizes result{call.batch_size()};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

int64_t memory_extent(IntArrayRef size, IntArrayRef stride) {
  int64_t n = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] == 0) return 0;
    n += (size[i] - 1) * stride[i];
  }
  return n;
}
// ---- Results ---------------------------------------------------------------------------------

namespace {
// The index of the argument that return `number` aliases; -1: none.
int written_argument(const BatchedCall& call, uint32_t number) {
  return call.plan().facts->returns[number].written;
}
void write(const BatchedCall& call, int argument, Tensor target, const Tensor& value) {
  const bool out = call.plan().facts->arguments[static_cast<size_t>(argument)].is_out;
  if (out && !target.sizes().equals(value.sizes())) target.resize_(value.sizes());
  target.copy_(value);
}
}  // namespace

void give_value(BatchedCall& call, uint32_t number, const Tensor& value) {
  int argument = written_argument(call, number);
  if (argument >= 0) {
    Tensor target = call.tensor(static_cast<uint32_t>(argument));
    if (!target.is_same(value)) write(call, argument, target, value);
  }
  call.give(number, value);
}
void give_value(BatchedCall& call, uint32_t number, const std::vector<Tensor>& values) {
  call.give(number, values);
}
void give_result(BatchedCall& call, uint32_t number, const Tensor& result) {
  int argument = written_argument(call, number);
  if (argument >= 0) {
    const lamella_value& target = call.original(static_cast<uint32_t>(argument));
    if (target.as.tensor != result.impl()) {
      write(call, argument, Tensor(TensorBase::borrow(target.as.tensor)), result);
    }
  }
  call.give_value(number, IValue(TensorBase(result)));
}
void give_result(BatchedCall& call, uint32_t number, const std::vector<Tensor>& results) {
  call.give_value(number, IValue(ArrayRef<Tensor>(results)));
}

void become(BatchedCall& call, uint32_t i, TensorBase value) {
  replace(call.original(i).as.tensor, std::move(value));
  call.give_value(0, IValue());
}

// ---- The tables ------------------------------------------------------------------------------

void need_matrices(const BatchedCall& call) {
  In first = input(call, 0);
  std::string_view name = call.op()->name;
  LAMELLA_CHECK(first.rank() >= 2, name.substr(name.rfind(':') + 1), ": expected '",
                call.plan().arguments[0].name, "' to be a matrix or a stack of them, got ",
                first.sizes());
}

Rule find_operator_rule(std::string_view name) {
  for (NamedRules rules : {shape_rules(), factory_rules(), matmul_rules(), linalg_rules(),
                           index_rules(), nn_rules(), norm_rules(), loss_rules(), misc_rules()}) {
    for (const NamedRule& rule : rules) {
      if (rule.name == name) return rule.rule;
    }
  }
  return nullptr;
}

}  // namespace lamella::vmap
