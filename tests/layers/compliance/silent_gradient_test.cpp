// No operator loses a gradient silently: every registered one is called with each tensor argument
// in turn requiring gradients, and each floating result must require them as well, or the
// operator's derivative says that it does not.
//
// Note [Calls without kernels]
//   What is recorded depends on schemas and derivatives, not on what kernels compute. So the test
//   includes a key below autograd on its thread, whose fallback makes results of the schema's types
//   from nothing: every operator takes every argument. Composite operators with no derivative of
//   their own are left out: they are the calls that they make.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lamella/abi/autograd.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/library.h"
#include "lamella/dispatch/registry.h"

namespace lamella {
namespace {

constexpr DispatchKey kBelow = DispatchKey::FuncTorchDynamicLayerBackMode;

TensorBase fresh() { return make_empty(IntArrayRef({2, 2}), ScalarType::Float, Device("cpu")); }

// ---- Kernels that compute nothing
// ----------------------------------------------------------------

lamella_status make_results(const lamella_kernel*, const lamella_operator* op, uint64_t,
                            const lamella_value* arguments, lamella_value* returns) {
  auto* entry = const_cast<OperatorEntry*>(static_cast<const OperatorEntry*>(op));
  std::lock_guard lock(Registry::get().mutex());
  const FunctionSchema& schema = Registry::get().schema(entry);
  for (size_t r = 0; r < schema.returns.size(); ++r) {
    const Argument& result = schema.returns[r];
    IValue value;
    if (!result.type.holds_tensor()) {
      value = IValue(int64_t{0});
      if (result.type.kind() == TypeKind::kBool) value = IValue(false);
      if (result.type.kind() == TypeKind::kFloat) value = IValue(0.0);
    } else if (result.type.is_list()) {
      value = IValue(std::vector<TensorBase>{fresh(), fresh()});
    } else {
      value = IValue(fresh());
      const AliasInfo* alias = result.alias();
      for (size_t i = 0; alias != nullptr && i < schema.arguments.size(); ++i) {
        const AliasInfo* of = schema.arguments[i].alias();
        if (of == nullptr || arguments[i].tag != LAMELLA_TENSOR) continue;
        bool same = !of->before.empty() && of->before == alias->before;
        TensorBase argument = TensorBase::borrow(arguments[i].as.tensor);
        if (same && result.is_write()) value = IValue(argument);
        if (same && !result.is_write()) {
          value = IValue(make_view(argument, argument.sizes(), argument.strides(), 0));
        }
      }
    }
    returns[r] = value.unsafe_release();
  }
  return LAMELLA_OK;
}

// ---- Arguments
// -----------------------------------------------------------------------------------

IValue some_value(const Argument& argument) {
  SchemaType type = argument.type;
  if (type.holds_tensor()) {
    bool list = type.is_list();
    return list ? IValue(std::vector<TensorBase>{fresh(), fresh()}) : IValue(fresh());
  }
  if (type.is_optional()) return IValue();
  if (type.is_list()) {
    switch (type.element().kind()) {
      case TypeKind::kInt:
        return IValue(std::vector<int64_t>{1, 1});
      case TypeKind::kFloat:
        return IValue(std::vector<double>{1.0});
      default:
        return IValue::list({});
    }
  }
  switch (type.kind()) {
    case TypeKind::kFloat:
      return IValue(1.0);
    case TypeKind::kBool:
      return IValue(true);
    case TypeKind::kStr:
      return IValue("mean");
    case TypeKind::kDevice:
      return IValue(Device("cpu"));
    case TypeKind::kGenerator:
      return IValue();
    default:
      return IValue(int64_t{1});
  }
}

// Arguments that hold places, choices, tolerances or running counts, whatever the dtype here.
const std::set<std::string>& constants() {
  static const std::set<std::string> names = {
      "index",  "indices",   "mask",         "condition",   "target", "repeats", "sorter",
      "pivots", "LU_pivots", "running_mean", "running_var", "atol",   "rtol"};
  return names;
}

TensorBase require(const TensorBase& tensor) {
  detail::check(lamella_tensor_set_requires_grad(tensor.impl(), 1));
  return tensor;
}

bool requires_grad(const lamella_tensor* tensor) {
  return lamella_tensor_requires_grad(const_cast<lamella_tensor*>(tensor)) != 0;
}

std::vector<lamella_tensor*> tensors_of(const lamella_value& value) {
  if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) return {value.as.tensor};
  if (value.tag != LAMELLA_TENSOR_LIST) return {};
  auto* list = static_cast<lamella_tensor**>(value.as.pointer);
  return {list, list + value.size};
}

class Silent : public ::testing::Test {
 protected:
  Silent() {
    auto key = static_cast<uint16_t>(kBelow);
    detail::check(
        lamella_library_open(LAMELLA_LIBRARY_IMPL, "_", key, __FILE__, __LINE__, &library_));
    lamella_kernel_description kernel = {};
    kernel.boxed = &make_results;
    detail::check(lamella_library_fallback(library_, key, &kernel));
  }
  ~Silent() override { lamella_library_close(library_); }
  lamella_library* library_ = nullptr;
};

// What is known of one operator, read under the registry's lock.
struct Facts {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<Argument> returns;
  const lamella_derivative* derivative = nullptr;
  bool composite = false;
};

Facts facts_of(OperatorEntry* op) {
  Registry& registry = Registry::get();
  std::lock_guard lock(registry.mutex());
  registry.resolve(op);
  const FunctionSchema& schema = registry.schema(op);
  Slot slot = registry.slot(op, DispatchKey::AutogradCPU);
  return {op->full_name(),
          {schema.arguments.begin(), schema.arguments.end()},
          {schema.returns.begin(), schema.returns.end()},
          op->derivative,
          slot.entry != nullptr && slot.entry->key == DispatchKey::CompositeImplicitAutograd};
}

// "" where the operator keeps the gradient of argument `which`, or says that it has none.
std::string lost(OperatorEntry* op, const Facts& facts, size_t which) {
  std::vector<IValue> values;
  for (const Argument& argument : facts.arguments) values.push_back(some_value(argument));
  const Argument& argument = facts.arguments[which];
  if (argument.type.is_list()) {
    std::vector<TensorBase> list{require(fresh()), fresh()};
    values[which] = IValue(list);
  } else if (argument.is_write()) {
    // A leaf must not be written: one that comes from a view of another.
    TensorBase leaf = require(fresh());
    lamella_value in = IValue(leaf).value(), out{};
    detail::check(lamella_call_boxed(Registry::get().find("aten::neg", ""), &in, 1, &out, 1));
    values[which] = IValue::adopt(out);
  } else {
    values[which] = IValue(require(fresh()));
  }
  std::vector<lamella_value> raw;
  for (const IValue& value : values) raw.push_back(value.value());
  std::vector<lamella_value> returns(facts.returns.size() + 1);
  lamella_status status =
      lamella_call_boxed(op, raw.data(), op->argument_count, returns.data(), op->return_count);
  if (status != LAMELLA_OK) {
    std::string text = lamella_error_text();
    bool out = false;
    for (const Argument& a : facts.arguments) out |= a.is_out();
    return out ? "" : "raises " + text;
  }
  std::string problem;
  for (size_t r = 0; r < facts.returns.size(); ++r) {
    IValue owned = IValue::adopt(returns[r]);
    bool may = facts.derivative == nullptr || r >= 64 ||
               ((facts.derivative->differentiable_returns >> r) & 1) != 0;
    if (facts.derivative != nullptr &&
        (facts.derivative->flags & LAMELLA_NOT_DIFFERENTIABLE) != 0) {
      may = false;
    }
    for (lamella_tensor* result : tensors_of(owned.value())) {
      if (may && !requires_grad(result)) problem = "return " + std::to_string(r);
    }
    // Without a derivative, backward raises and names the operator and its place.
    for (lamella_tensor* result : tensors_of(owned.value())) {
      if (facts.derivative != nullptr || !requires_grad(result)) continue;
      TensorBase grad = fresh();
      lamella_tensor* root = result;
      lamella_tensor* with = grad.impl();
      status = lamella_backward_run(&root, &with, 1, nullptr, 0, LAMELLA_RETAIN_GRAPH, nullptr);
      std::string text = status == LAMELLA_OK ? "nothing" : lamella_error_text();
      bool named =
          text.find(facts.name + ": ") == 0 && text.find("was registered at ") != std::string::npos;
      if (!named) problem = "backward raises " + text;
    }
  }
  return problem;
}

TEST_F(Silent, EveryOperatorKeepsGradientsOrSaysThatItHasNone) {
  Library own(Library::FRAGMENT, "silent", std::nullopt, "silent.cpp", 1);
  own.def("kernel_only(Tensor self, Tensor[] others) -> (Tensor, Tensor)");
  IncludeDispatchKeyGuard below{DispatchKeySet(kBelow)};
  size_t walked = 0, calls = 0, composite = 0;
  std::map<std::string, std::string> found;
  for (OperatorEntry* op : Registry::get().entries()) {
    if (!op->is_published()) continue;
    Facts facts = facts_of(op);
    ++walked;
    bool gives_tensors = false;
    for (const Argument& result : facts.returns) gives_tensors |= result.type.holds_tensor();
    if (!gives_tensors) continue;
    if (facts.composite) {
      ++composite;
      continue;
    }
    for (size_t i = 0; i < facts.arguments.size(); ++i) {
      if (!facts.arguments[i].type.holds_tensor() || constants().count(facts.arguments[i].name)) {
        continue;
      }
      ++calls;
      // Only whether there is a bias matters to it, not which.
      if (facts.name == "aten::native_layer_norm_backward" && facts.arguments[i].name == "bias") {
        continue;
      }
      std::string problem = lost(op, facts, i);
      if (!problem.empty()) found[facts.name + " " + facts.arguments[i].name] = problem;
    }
  }
  for (const auto& [what, problem] : found) ADD_FAILURE() << what << ": " << problem;
  std::printf("%zu operators, %zu of them composite, %zu calls\n", walked, composite, calls);
  EXPECT_GT(calls, 500u);
}

}  // namespace
}  // namespace lamella
