// Schemas and kernels of operators that run a module.
#include "lamella/graph/client/module_operator.h"

#include <set>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/graph/client/compile.h"
#include "lamella/graph/custom_call/operator_plan.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::hlo {
namespace {

// Limits nested module operators on one thread; deeper nesting is assumed to be infinite recursion.
constexpr int kMaxCallDepth = 200;
__thread int depth = 0;

struct Depth {
  explicit Depth(const std::string& name) {
    LAMELLA_CHECK(depth < kMaxCallDepth, name, ": expected at most ", kMaxCallDepth,
                  " nested operators that run modules, got one that calls itself");
    ++depth;
  }
  ~Depth() { --depth; }
};

struct Argument {
  std::string name;
  const Shape* shape;
  bool written = false;
};
struct Result {
  const Shape* shape;
  int64_t argument = -1;  // the argument that it is written to; -1 if none
};

// Calls f(shape, path) for each array in a shape, in order.
template <class F>
void each_array(const Shape& shape, std::vector<int64_t>* path, F&& f) {
  if (!shape.is_tuple()) {
    f(shape, *path);
    return;
  }
  for (size_t i = 0; i < shape.tuple_shapes().size(); ++i) {
    path->push_back(static_cast<int64_t>(i));
    each_array(shape.tuple_shapes()[i], path, f);
    path->pop_back();
  }
}

// The arguments and results of a module's entry computation, as an operator sees them.
struct Interface {
  std::vector<Argument> arguments;
  std::vector<Result> results;

  Interface(std::string_view name, const Module& module) {
    auto check = [&](const Shape& shape, const auto&... what) {
      LAMELLA_CHECK(shape.is_array() && scalar_type_of(shape.element_type()).has_value(), name,
                    ": expected ", what..., " to be an array of a type that tensors have, got ",
                    shape.to_string(false));
      LAMELLA_CHECK(shape.is_static(), name, ": expected ", what..., " to have a static size, got ",
                    shape.to_string(false));
    };
    std::set<std::string> names;
    std::vector<int64_t> path;
    std::vector<std::pair<int64_t, std::vector<int64_t>>> places;  // of arguments
    for (const Instruction* parameter : module.entry->parameters) {
      each_array(*parameter->shape, &path, [&](const Shape& shape, const auto& at) {
        check(shape, "parameter '", parameter->name, "'");
        std::string wanted = identifier(parameter->name);
        for (int64_t i : at) wanted += str("_", i);
        std::string unique = wanted;
        for (int n = 1; !names.insert(unique).second; ++n) unique = str(wanted, "_", n);
        arguments.push_back({unique, &shape, false});
        places.emplace_back(parameter->parameter_number, at);
      });
    }
    each_array(*module.entry->root->shape, &path, [&](const Shape& shape, const auto& at) {
      check(shape, "the result");
      Result result{&shape, -1};
      for (const InputOutputAlias& alias : module.input_output_aliases) {
        if (alias.output != at) continue;
        for (size_t a = 0; a < places.size(); ++a) {
          if (places[a].first != alias.parameter || places[a].second != alias.parameter_index) {
            continue;
          }
          LAMELLA_CHECK(shape.compatible(*arguments[a].shape), name,
                        ": expected input_output_alias to join equal shapes, got ",
                        shape.to_string(false), " and ", arguments[a].shape->to_string(false));
          result.argument = static_cast<int64_t>(a);
          arguments[a].written = true;
        }
      }
      results.push_back(result);
    });
  }

  // Converts a name to an identifier. Drops the ".number" that builders append to names.
  static std::string identifier(std::string_view name) {
    size_t point = name.find_last_of('.');
    bool is_numbered = point != std::string_view::npos && point > 0 && point + 1 < name.size() &&
                       name.find_first_not_of("0123456789", point + 1) == std::string_view::npos;
    if (is_numbered) name = name.substr(0, point);
    std::string made;
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) made += '_';
    for (char c : name) {
      bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      made += plain ? c : '_';
    }
    return made;
  }

  std::string schema(std::string_view name) const {
    std::vector<std::string> sets(arguments.size());
    char letter = 'a';
    for (size_t a = 0; a < arguments.size(); ++a) {
      if (!arguments[a].written) continue;
      sets[a] = str("(", letter, "!)");
      LAMELLA_CHECK(letter != 'z', name, ": expected at most 25 arguments that are written");
      ++letter;
    }
    std::string text = str(name, "(");
    for (size_t a = 0; a < arguments.size(); ++a) {
      text += str(a == 0 ? "" : ", ", "Tensor", sets[a], " ", arguments[a].name);
    }
    text += ") -> ";
    if (results.size() != 1) text += "(";
    for (size_t r = 0; r < results.size(); ++r) {
      text += str(r == 0 ? "" : ", ", "Tensor");
      if (results[r].argument >= 0) text += sets[static_cast<size_t>(results[r].argument)];
    }
    return results.size() != 1 ? text + ")" : text;
  }
};

class ModuleKernel {
 public:
  ModuleKernel(std::string_view name, std::shared_ptr<const Module> module,
               const CompileOptions& options)
      : name_(name), interface_(name, *module), executable_(compile(module, options)) {}

  std::string schema() const { return interface_.schema(name_); }

  void run(ArgumentSpan given, ReturnSpan returns) const {
    Depth inside(name_);
    std::vector<TensorBase> tensors;
    for (size_t a = 0; a < interface_.arguments.size(); ++a) tensors.push_back(checked(given, a));
    for (const TensorBase& tensor : tensors) {
      if (tensor.is_cuda()) return finish(given, on_device(tensors, tensor.device()), returns);
    }
    std::vector<Value> leaves;
    for (size_t a = 0; a < interface_.arguments.size(); ++a) {
      leaves.push_back(value_of_tensor(interface_.arguments[a].shape, tensors[a]));
    }
    const Module& module = executable_->module();
    std::vector<Value> arguments;
    size_t next = 0;
    for (const Instruction* parameter : module.entry->parameters) {
      arguments.push_back(value_of_leaves(parameter->shape, leaves, &next));
    }
    std::vector<TensorBase> results;
    {
      BelowLayers below;
      results = tensors_of_value(executable_->run(arguments));
    }
    finish(given, std::move(results), returns);
  }

  std::vector<TensorBase> on_device(std::span<const TensorBase> tensors, Device device) const {
    BelowLayers below;
    return executable_->run_on_device(tensors, device);
  }
  // Writes the arguments that are results.
  void finish(ArgumentSpan given, std::vector<TensorBase> results, ReturnSpan returns) const {
    {
      BelowLayers below;
      for (size_t r = 0; r < results.size(); ++r) {
        int64_t argument = interface_.results[r].argument;
        if (argument < 0) continue;
        Tensor written = given[static_cast<size_t>(argument)].toTensor();
        written.copy_(Tensor(results[r]));
        results[r] = written;
      }
    }
    for (size_t r = 0; r < results.size(); ++r) returns[r] = IValue(std::move(results[r]));
  }

  void run_meta(ArgumentSpan given, ReturnSpan returns) const {
    for (size_t a = 0; a < interface_.arguments.size(); ++a) checked(given, a);
    for (size_t r = 0; r < interface_.results.size(); ++r) {
      const Result& result = interface_.results[r];
      if (result.argument >= 0) {
        returns[r] = given[static_cast<size_t>(result.argument)];
        continue;
      }
      std::span<const int64_t> sizes = result.shape->dimensions();
      lamella_tensor* made = nullptr;
      lamella::detail::check(
          lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(),
                               static_cast<uint8_t>(*scalar_type_of(result.shape->element_type())),
                               static_cast<uint8_t>(DeviceType::Meta), -1, &made));
      returns[r] = IValue(TensorBase::adopt(made));
    }
  }

 private:
  static std::string text_of(ScalarType type, IntArrayRef sizes) { return str(type, sizes); }

  TensorBase checked(ArgumentSpan given, size_t a) const {
    const Argument& argument = interface_.arguments[a];
    TensorBase tensor = given[a].toTensor<TensorBase>();
    std::span<const int64_t> sizes = argument.shape->dimensions();
    ScalarType type = *scalar_type_of(argument.shape->element_type());
    auto expected = [&] { return text_of(type, IntArrayRef(sizes.data(), sizes.size())); };
    LAMELLA_CHECK(tensor.defined(), name_, ": expected '", argument.name, "' to be ", expected(),
                  ", got an undefined tensor");
    if (tensor.is_wrapped_number() && sizes.empty() && !argument.written) {
      tensor = Tensor(tensor).to(type);
    }
    LAMELLA_CHECK(has_shape(tensor, *argument.shape), name_, ": expected '", argument.name,
                  "' to be ", expected(), ", got ", text_of(tensor.scalar_type(), tensor.sizes()));
    return tensor;
  }

  std::string name_;
  Interface interface_;
  std::unique_ptr<Executable> executable_;
};

bool draws_random_numbers(const Module& module) {
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      if (i->opcode == Opcode::Rng || i->opcode == Opcode::RngGetAndUpdateState) return true;
      if (i->opcode == Opcode::CustomCall &&
          operator_draws_random_numbers(i->text(AttributeKey::CustomCallTarget))) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string schema_of_module(std::string_view name, const Module& module) {
  return Interface(name, module).schema(name);
}

Library define_operator(std::string_view name, std::shared_ptr<const Module> module,
                        const CompileOptions& options, const char* file, uint32_t line) {
  size_t space = name.find("::");
  LAMELLA_CHECK(space != std::string_view::npos && space != 0, "define_operator: expected a name ",
                "with a namespace, as ns::name, got '", name, "'");
  const char* tags = draws_random_numbers(*module) ? "nondeterministic_seeded" : nullptr;
  auto kernel = std::make_shared<const ModuleKernel>(name, std::move(module), options);
  Library library(Library::FRAGMENT, std::string(name.substr(0, space)).c_str(), std::nullopt, file,
                  line);
  library.def(kernel->schema(), tags);
  std::string full(name);
  for (DispatchKey key : {DispatchKey::CPU, DispatchKey::CUDA}) {
    library.impl(full.c_str(), key,
                 [kernel](const OperatorHandle&, DispatchKeySet, ArgumentSpan arguments,
                          ReturnSpan returns) { kernel->run(arguments, returns); });
  }
  library.impl(full.c_str(), DispatchKey::Meta,
               [kernel](const OperatorHandle&, DispatchKeySet, ArgumentSpan arguments,
                        ReturnSpan returns) { kernel->run_meta(arguments, returns); });
  return library;
}

}  // namespace lamella::hlo
