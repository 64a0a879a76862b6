// KernelCalls: products, convolutions, attention, transposes and gradients of windows.
#include "lamella/graph/compiler/kernel_calls.h"

#include <algorithm>
#include <cstring>

#include "lamella/graph/compiler/global_data.h"
#include "lamella/graph/execute/attention_call.h"
#include "lamella/graph/execute/select_scatter.h"
#include "lamella/graph/passes/convolution_problem.h"

namespace lamella::hlo::compiler {
namespace {

// Merges dimensions into one size and stride. False if their strides do not allow it.
bool flattened(const Shape& shape, const View& view, std::span<const int64_t> dimensions,
               int64_t* size, int64_t* stride) {
  *size = 1;
  *stride = 0;
  bool first = true;
  for (size_t n = dimensions.size(); n-- > 0;) {
    int64_t d = dimensions[n], own = view.strides[static_cast<size_t>(d)];
    if (shape.dimension(d) == 1) continue;
    if (first) {
      *stride = own;
      first = false;
    } else if (own != *stride * *size) {
      return false;
    }
    *size *= shape.dimension(d);
  }
  if (first) *stride = 1;
  return true;
}
// Products wrap around, so unsigned products have the bits of signed ones.
ElementType product_type(ElementType type) {
  switch (type) {
    case ElementType::U16:
      return ElementType::S16;
    case ElementType::U32:
      return ElementType::S32;
    case ElementType::U64:
      return ElementType::S64;
    default:
      return type;
  }
}

}  // namespace

struct KernelCalls::Side {
  Shape shape;
  View view;
  Place place;
  std::vector<int64_t> batches;  // dimensions
  int64_t free_size, free, sum_size, sum;
};
// An operand as batch, free and summed dimensions; copied into this order if its strides require
// it.
KernelCalls::Side KernelCalls::side_of(const Instruction* dot, size_t n,
                                       std::span<const int64_t> batch, std::span<const int64_t> sum,
                                       std::vector<Place>* made) {
  View view = plan_.side(dot, n);
  auto sizes = dot->operand_shape(n).dimensions();
  Shape shape = Shape::array(view.base->shape->element_type(), {sizes.begin(), sizes.end()});
  Side side{shape, std::move(view), {}, {batch.begin(), batch.end()}, 0, 0, 0, 0};
  std::vector<int64_t> sums(sum.begin(), sum.end()), frees;
  for (int64_t d = 0; d < side.shape.rank(); ++d) {
    bool named = std::find(batch.begin(), batch.end(), d) != batch.end() ||
                 std::find(sums.begin(), sums.end(), d) != sums.end();
    if (!named) frees.push_back(d);
  }
  side.place = *e_.place_of(side.view.base);
  if (flattened(side.shape, side.view, frees, &side.free_size, &side.free) &&
      flattened(side.shape, side.view, sums, &side.sum_size, &side.sum)) {
    return side;
  }
  // Copies with the dimensions in the order batch, free, summed.
  std::vector<int64_t> order = side.batches;
  order.insert(order.end(), frees.begin(), frees.end());
  order.insert(order.end(), sums.begin(), sums.end());
  Side copied = dense(side.shape, order);
  for (size_t d = 0; d < batch.size(); ++d) copied.batches.push_back(static_cast<int64_t>(d));
  for (int64_t d : frees) copied.free_size *= side.shape.dimension(d);
  for (int64_t d : sums) copied.sum_size *= side.shape.dimension(d);
  copied.free = copied.sum_size;
  made->push_back(copied.place);
  copy(copied, side, order);
  return copied;
}
KernelCalls::Side KernelCalls::dense(const Shape& shape, const std::vector<int64_t>& order) {
  std::vector<int64_t> sizes;
  for (int64_t d : order) sizes.push_back(shape.dimension(d));
  Side made{Shape::array(shape.element_type(), sizes), {}, {}, {}, 1, 0, 1, 1};
  made.view.strides.assign(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) {
    made.view.strides[d - 1] = made.view.strides[d] * sizes[d];
  }
  made.place = frame_.temporary(made.shape);
  return made;
}
void KernelCalls::copy(const Side& to, const Side& from, const std::vector<int64_t>& order) {
  ElementType type = to.shape.element_type();
  e_.begin_scope();
  auto nest = [&](auto& self, size_t d, llvm::Value* in, llvm::Value* out) -> void {
    if (d == order.size()) {
      llvm::Value* value = e_.load_at(e_.pointer(from.place), type, e_.uniform(in));
      e_.store_at(to.place, type, e_.uniform(out), value);
      return;
    }
    int64_t in_stride = from.view.strides[static_cast<size_t>(order[d])];
    e_.loop(e_.i64(0), e_.i64(to.shape.dimension(static_cast<int64_t>(d))), 1,
            [&](llvm::Value* at) {
              auto next = [&](llvm::Value* sum, int64_t stride) {
                return e_.b.CreateAdd(sum, e_.b.CreateMul(at, e_.i64(stride)));
              };
              self(self, d + 1, next(in, in_stride), next(out, to.view.strides[d]));
            });
  };
  nest(nest, 0, e_.i64(0), e_.i64(0));
  e_.end_scope();
}

void KernelCalls::product(const Instruction* i, const Place& to, const Instruction* row) {
  if (i->shape->elements() == 0) return;
  std::vector<Place> made;
  Side a = side_of(i, 0, i->integers(AttributeKey::LhsBatchDims),
                   i->integers(AttributeKey::LhsContractingDims), &made);
  Side b = side_of(i, 1, i->integers(AttributeKey::RhsBatchDims),
                   i->integers(AttributeKey::RhsContractingDims), &made);
  // Batch dimensions that merge into one on both sides are one call; the others are loops around
  // it.
  size_t outer = 0;
  int64_t batch = 1, a_batch = 1, b_batch = 1, inner = 0;
  auto are_one = [&](const Side& side, int64_t* stride) {
    return flattened(side.shape, side.view, std::span(side.batches).subspan(outer), &batch, stride);
  };
  while (!are_one(a, &a_batch) || !are_one(b, &b_batch)) ++outer;
  inner = a.free_size * b.free_size * batch;
  ElementType sums = product_type(i->shape->element_type());
  // Types of operands that differ from that of the sums are signed already, or bytes.
  ElementType numbers = a.shape.element_type();
  if (numbers == i->shape->element_type()) numbers = sums;
  auto number = [](ElementType type) { return static_cast<int64_t>(*scalar_type_of(type)); };
  llvm::Constant* problem = numbers_of(
      {number(numbers), batch, a.free_size, b.free_size, a.sum_size, a_batch, a.free, a.sum,
       b_batch, b.sum, b.free, row != nullptr ? plan_.view(row).strides.back() : 0, number(sums)});
  llvm::Type* pointer = e_.b.getPtrTy();
  llvm::FunctionCallee dot = e_.runtime("lamella_dot", e_.b.getInt32Ty(),
                                        {pointer, pointer, pointer, pointer, pointer, pointer});
  llvm::Value* storage = storage_of(b.place);
  llvm::Value* first = row_of(row);
  auto at = [&](const Place& place, llvm::Value* elements, ElementType type) {
    llvm::Value* bytes =
        e_.b.CreateMul(elements, e_.i64(static_cast<int64_t>(element_bytes(type))));
    return e_.b.CreateGEP(e_.b.getInt8Ty(), e_.pointer(place), bytes);
  };
  auto nest = [&](auto& self, size_t d, llvm::Value* in_a, llvm::Value* in_b,
                  llvm::Value* in_c) -> void {
    if (d == outer) {
      frame_.return_if(
          e_.b.CreateCall(dot, {problem, at(a.place, in_a, numbers), at(b.place, in_b, numbers),
                                at(to, in_c, sums), storage, first}));
      return;
    }
    int64_t each = inner;
    for (size_t k = d + 1; k < outer; ++k) each *= a.shape.dimension(a.batches[k]);
    e_.loop(e_.i64(0), e_.i64(a.shape.dimension(a.batches[d])), 1, [&](llvm::Value* n) {
      auto next = [&](llvm::Value* sum, int64_t stride) {
        return e_.b.CreateAdd(sum, e_.b.CreateMul(n, e_.i64(stride)));
      };
      auto stride_of = [&](const Side& side) {
        return side.view.strides[static_cast<size_t>(side.batches[d])];
      };
      self(self, d + 1, next(in_a, stride_of(a)), next(in_b, stride_of(b)), next(in_c, each));
    });
  };
  nest(nest, 0, e_.i64(0), e_.i64(0), e_.i64(0));
  frame_.give_back(made);
}

llvm::Value* KernelCalls::row_of(const Instruction* row) {
  if (row == nullptr) return llvm::ConstantPointerNull::get(e_.b.getPtrTy());
  return e_.pointer(*e_.place_of(plan_.view(row).base));
}
llvm::Value* KernelCalls::storage_of(const Place& place) {
  if (place.kind != Place::Buffer || place.at >= frame_.first_output) {
    return llvm::ConstantPointerNull::get(e_.b.getPtrTy());
  }
  return e_.pointer({Place::Buffer, e_.temporary_buffer + 1 + place.at, nullptr});
}

void KernelCalls::convolution(const Instruction* i, const Place& to, const Instruction* row) {
  ConvolutionProblem problem = *convolution_problem(*i);
  std::vector<int64_t> numbers = {problem.kind,        static_cast<int64_t>(problem.spatial.size()),
                                  problem.batch,       problem.groups,
                                  problem.in_channels, problem.out_channels};
  using Spatial = ConvolutionProblem::Spatial;
  for (auto member : {&Spatial::in, &Spatial::out, &Spatial::kernel, &Spatial::stride,
                      &Spatial::padding, &Spatial::padding_end, &Spatial::dilation}) {
    for (size_t d = 0; d < 3; ++d) {
      numbers.push_back(d < problem.spatial.size() ? problem.spatial[d].*member : 0);
    }
  }
  const Place places[] = {*e_.place_of(plan_.view(i->operands[0]).base),
                          *e_.place_of(plan_.view(i->operands[1]).base), to};
  std::vector<llvm::Value*> arguments;
  for (const ConvolutionProblem::Role* role : {&problem.src, &problem.weights, &problem.dst}) {
    std::vector<int64_t> strides =
        role->array == 2 ? dense_strides(*i->shape) : plan_.view(i->operands[role->array]).strides;
    for (size_t d = 0; d < 5; ++d) {
      bool has = d < role->dimensions.size();
      numbers.push_back(has ? strides[static_cast<size_t>(role->dimensions[d])] : 0);
    }
    arguments.push_back(e_.pointer(places[role->array]));
  }
  const size_t weights = problem.weights.array;
  arguments.push_back(weights == 2 ? row_of(nullptr) : storage_of(places[weights]));
  arguments.push_back(row_of(row));
  arguments.insert(arguments.begin(), numbers_of(numbers));
  std::vector<llvm::Type*> types(arguments.size(), e_.b.getPtrTy());
  llvm::FunctionCallee call = e_.runtime("lamella_convolution", e_.b.getInt32Ty(), types);
  frame_.return_if(e_.b.CreateCall(call, arguments));
}

void KernelCalls::select_and_scatter(const Instruction* i) {
  SelectScatter p = *select_scatter(*i);
  std::vector<int64_t> numbers(sizeof(p) / sizeof(int64_t));
  std::memcpy(numbers.data(), &p, sizeof(p));
  std::vector<llvm::Value*> arguments{numbers_of(numbers)};
  for (const Instruction* operand : i->operands) {
    arguments.push_back(e_.pointer(*e_.place_of(operand)));
  }
  arguments.push_back(e_.pointer(e_.places.at(i)[0]));
  std::vector<llvm::Type*> types(arguments.size(), e_.b.getPtrTy());
  llvm::FunctionCallee call = e_.runtime("lamella_select_scatter", e_.b.getInt32Ty(), types);
  frame_.return_if(e_.b.CreateCall(call, arguments));
}

void KernelCalls::transpose(const Instruction* i) {
  View from = plan_.view(i);
  if (from.base == i) {  // no strides express the view on memory
    from = plan_.view(i->operands[0]);
    std::vector<int64_t> strides;
    for (int64_t d : i->integers(AttributeKey::Dimensions)) {
      strides.push_back(from.strides[static_cast<size_t>(d)]);
    }
    from.strides = strides;
  }
  std::vector<int64_t> numbers{element_bytes(i->shape->element_type()), i->shape->rank()};
  for (int64_t size : i->shape->dimensions()) numbers.push_back(size);
  for (int64_t stride : from.strides) numbers.push_back(stride);
  llvm::Type* pointer = e_.b.getPtrTy();
  llvm::FunctionCallee call =
      e_.runtime("lamella_transpose", e_.b.getInt32Ty(), {pointer, pointer, pointer});
  frame_.return_if(e_.b.CreateCall(call, {numbers_of(numbers), e_.pointer(*e_.place_of(from.base)),
                                          e_.pointer(e_.places.at(i)[0])}));
}

void KernelCalls::attention(const Instruction* i) {
  AttentionCall call = *attention_call(*i);
  const Shape &q = i->operand_shape(0), &k = i->operand_shape(1), &v = i->operand_shape(2);
  const std::vector<Place>& to = e_.places.at(i);
  double scale = call.scale;
  int64_t scale_bits = 0;
  std::memcpy(&scale_bits, &scale, sizeof(scale_bits));
  std::vector<int64_t> numbers = {static_cast<int64_t>(*scalar_type_of(q.element_type())),
                                  q.dimension(0),
                                  q.dimension(1),
                                  k.dimension(1),
                                  q.dimension(2),
                                  k.dimension(2),
                                  q.dimension(3),
                                  v.dimension(3),
                                  call.causal ? 1 : 0,
                                  scale_bits};
  std::vector<llvm::Value*> data;
  std::vector<Place> made;
  for (size_t n = 0; n < 3; ++n) {
    View view = plan_.view(i->operands[n]);
    Place place = *e_.place_of(view.base);
    const Shape& shape = i->operand_shape(n);
    if (view.strides[3] != 1 && shape.dimension(3) != 1) {
      Side from{shape, view, place, {}, 0, 0, 0, 0};
      Side copied = dense(shape, {0, 1, 2, 3});
      copy(copied, from, {0, 1, 2, 3});
      made.push_back(copied.place);
      view = copied.view;
      place = copied.place;
    }
    numbers.insert(numbers.end(), view.strides.begin(), view.strides.begin() + 3);
    data.push_back(e_.pointer(place));
  }
  int64_t rows = q.dimension(2), width = v.dimension(3), heads = q.dimension(1);
  bool exchanged = false;
  for (const auto& [transposed, of] : plan_.exchanged) {
    if (of != i) continue;
    e_.places[transposed] = {to[0]};
    exchanged = true;
  }
  if (exchanged) {
    numbers.insert(numbers.end(), {rows * heads * width, width, heads * width});
  } else {
    numbers.insert(numbers.end(), {rows * heads * width, rows * width, width});
  }
  llvm::Value* none = llvm::ConstantPointerNull::get(e_.b.getPtrTy());
  std::vector<int64_t> mask_strides(8, 0);
  llvm::Value* mask = none;
  if (call.mask >= 0) {
    const Instruction* given = i->operands[static_cast<size_t>(call.mask)];
    View view = plan_.view(given);
    mask = e_.pointer(*e_.place_of(view.base));
    int64_t rank = given->shape->rank();
    for (int64_t d = 0; d < rank; ++d) {
      if (given->shape->dimension(d) == 1) continue;
      mask_strides[static_cast<size_t>(4 - rank + d)] = view.strides[static_cast<size_t>(d)];
    }
  }
  numbers.insert(numbers.end(), mask_strides.begin(), mask_strides.end());
  data.insert(data.end(), {mask, none, e_.pointer(to[0]), e_.pointer(to[1])});
  llvm::Type* pointer = e_.b.getPtrTy();
  llvm::Value* table = e_.variable(llvm::ArrayType::get(pointer, data.size()));
  for (size_t n = 0; n < data.size(); ++n) {
    e_.b.CreateStore(data[n], e_.b.CreateConstInBoundsGEP1_64(pointer, table, n));
  }
  llvm::FunctionCallee attention =
      e_.runtime("lamella_attention", e_.b.getInt32Ty(), {pointer, pointer});
  frame_.return_if(e_.b.CreateCall(attention, {numbers_of(numbers), table}));
  frame_.give_back(made);
}

llvm::Constant* KernelCalls::numbers_of(const std::vector<int64_t>& numbers) {
  return global_data(e_.module,
                     llvm::ConstantDataArray::get(e_.context, llvm::ArrayRef<int64_t>(numbers)));
}

}  // namespace lamella::hlo::compiler
