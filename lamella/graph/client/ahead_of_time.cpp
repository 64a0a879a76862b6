// Writes object files and C headers of modules, and runs the programs in them.
#include "lamella/graph/client/ahead_of_time.h"

#include <atomic>
#include <cctype>
#include <cstring>
#include <exception>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/core/fork.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/runtime/sized_value.h"
#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::hlo {
namespace {

// An element in C; two of them for a complex number. What C has no type for is bits.
std::string c_type(ElementType type) {
  ElementType part = is_complex(type) ? part_of_complex(type) : type;
  if (part == ElementType::F32) return "float";
  if (part == ElementType::F64) return "double";
  bool is_signed = element_kind(type) == ElementKind::Signed && element_bits(type) >= 8;
  return str(is_signed ? "int" : "uint", 8 * element_bytes(type), "_t");
}

struct Array {
  std::string name;  // of the argument
  std::string from;  // its description in the module's terms
  const Shape* shape;
};
void add_arrays(const Shape& shape, const std::string& from, const char* name,
                std::vector<Array>* all) {
  if (shape.is_tuple()) {
    for (size_t e = 0; e < shape.tuple_shapes().size(); ++e) {
      add_arrays(shape.tuple_shapes()[e], str(from, " element ", e), name, all);
    }
    return;
  }
  LAMELLA_CHECK(shape.is_array() && shape.is_static(), "compile: expected arrays, got ", from,
                " of ", shape.to_string(false));
  all->push_back({str(name, all->size()), from, &shape});
}

bool is_name_of_c(const std::string& text) {
  bool good = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0;
  for (char c : text) good = good && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_');
  return good;
}

std::string header_of(const std::string& function, const std::vector<Array>& inputs,
                      const std::vector<Array>& outputs) {
  std::string guard = function + "_H_";
  for (char& c : guard) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string arguments, meanings;
  auto add = [&](const std::vector<Array>& arrays, const char* constant) {
    for (const Array& one : arrays) {
      arguments += str(arguments.empty() ? "" : ", ", constant, c_type(one.shape->element_type()),
                       "* ", one.name);
      meanings += str("//   ", one.name, ": ", one.shape->to_string(false), ", ", one.from, "\n");
    }
  };
  add(inputs, "const ");
  add(outputs, "");
  return str(
      "// Written by Lamella's compiler. Link the object file with -llamella_graph -llamella.\n"
      "#ifndef ",
      guard, "\n#define ", guard,
      "\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      "// Arrays are row-major; outputs must not overlap each other.\n",
      meanings,
      "// Returns 0, or 1 on failure; lamella_program_error() gives the reason, for the calling "
      "thread.\n"
      "// Several threads may call it at the same time.\n"
      "int ",
      function, "(", arguments.empty() ? "void" : arguments,
      ");\nconst char* lamella_program_error(void);\n\n"
      "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

constexpr size_t kAlignment = 64;
// Calls f for each constant whose values the text leaves out, in order.
template <class F>
void for_each_large_constant(const Module& module, size_t most_bytes, F&& f) {
  for (const Computation* computation : module.computations) {
    for (Instruction* i : computation->instructions) {
      if (i->opcode != Opcode::Constant || !i->shape->is_array()) continue;
      if (i->literal->is_elided() || i->literal->bytes() > most_bytes) f(*i);
    }
  }
}
// Gives these constants the values that stand one behind another, aligned, in `weights`.
void set_weights(Module& module, const char* weights, uint64_t size) {
  uint64_t at = 0;
  for_each_large_constant(module, SIZE_MAX, [&](Instruction& i) {
    Literal literal = Literal::lent(*i.shape, weights + at);
    LAMELLA_CHECK(literal.bytes() <= size - at, "compile: expected the values of ", i.name);
    at +=
        std::min<uint64_t>((literal.bytes() + kAlignment - 1) / kAlignment * kAlignment, size - at);
    i.literal = module.arena().make<Literal>(std::move(literal));
  });
}

// The state of an object file's program after its first call.
struct Opened {
  std::unique_ptr<Executable> executable;
  std::vector<std::vector<const Shape*>> parameters;  // the arrays of each
};
fork::Held<std::mutex> opening{fork::Level::kGraph};
const Opened& open(lamella_program& program) {
  std::atomic_ref<void*> place(program.executable);
  if (void* there = place.load(std::memory_order_acquire)) return *static_cast<Opened*>(there);
  std::lock_guard<std::mutex> lock(opening);
  if (void* there = place.load(std::memory_order_acquire)) return *static_cast<Opened*>(there);
  auto made = std::make_unique<Opened>();
  StoredCode stored{{program.regions, program.regions_size}, {program.image, program.image_size}};
  std::shared_ptr<Module> module = parse_module({program.text, program.text_size});
  bool has_weights = false;
  for_each_large_constant(*module, SIZE_MAX, [&](Instruction&) { has_weights = true; });
  if (has_weights) set_weights(*module, program.weights, program.weights_size);
  for (const Instruction* parameter : module->entry->parameters) {
    made->parameters.push_back(array_leaves(*parameter->shape));
  }
  made->executable = make_executor(std::move(module), {}, &stored);
  const Opened& opened = *made;
  // Never freed, because the program may be called until the process ends.
  place.store(made.release(), std::memory_order_release);
  return opened;
}

Value value_of(const Shape* shape, const void* data) {
  constexpr uintptr_t kAlignment = 16;
  if (reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
    // The value does not own its memory, so the run will not write to it.
    return Value::view(shape, const_cast<void*>(data), nullptr, nullptr);
  }
  Value copy = Value::uninitialized(shape);
  if (copy.bytes() != 0) std::memcpy(copy.data(), data, copy.bytes());
  return copy;
}
void write_arrays(const Value& value, void* const*& to) {
  if (value.shape().is_array()) {
    if (value.bytes() != 0) std::memcpy(*to, value.data(), value.bytes());
    ++to;
    return;
  }
  for (size_t e = 0; e < value.size(); ++e) write_arrays(value.element(e), to);
}

void run(lamella_program& program, const void* const* inputs, void* const* outputs) {
  const Opened& opened = open(program);
  std::vector<Value> arguments;
  const auto& parameters = opened.executable->module().entry->parameters;
  for (size_t p = 0; p < parameters.size(); ++p) {
    std::vector<Value> leaves;
    for (const Shape* leaf : opened.parameters[p]) leaves.push_back(value_of(leaf, *inputs++));
    size_t next = 0;
    arguments.push_back(value_of_leaves(parameters[p]->shape, leaves, &next));
  }
  write_arrays(opened.executable->run(arguments), outputs);
}

thread_local std::string last_error;

}  // namespace

ProgramFiles compile_ahead_of_time(const Module& module, const std::string& function) {
  LAMELLA_CHECK(is_name_of_c(function), "compile: expected a C identifier for the function, got '",
                function, "'");
  MachineCompiler* compiler = machine_compiler();
  LAMELLA_CHECK(compiler != nullptr,
                "compile: expected liblamella_compiler.so, which is built with LLVM "
                "(llvm-19-dev)");
  // Compiles the module read back from its text, because the program will have only the text.
  ObjectContents contents;
  contents.function = function;
  PrintOptions options;
  options.metadata = false;
  options.most_constant_bytes = 1024;
  contents.module_text = to_string(module, options);
  for_each_large_constant(module, options.most_constant_bytes, [&](const Instruction& i) {
    contents.weights.append(static_cast<const char*>(i.literal->data()), i.literal->bytes());
    contents.weights.resize((contents.weights.size() + kAlignment - 1) / kAlignment * kAlignment);
  });
  std::shared_ptr<Module> read = parse_module(contents.module_text);
  set_weights(*read, contents.weights.data(), contents.weights.size());
  std::vector<Array> inputs, outputs;
  LAMELLA_CHECK(!has_dynamic_sizes(*read),
                "compile: expected arrays of static size, got dynamic dimensions in '", read->name,
                "'");
  for (const Instruction* parameter : read->entry->parameters) {
    add_arrays(*parameter->shape, std::string(parameter->name), "input", &inputs);
  }
  add_arrays(*read->entry->root->shape, std::string(read->entry->root->name), "output", &outputs);
  StoredCode stored;
  make_executor(read, {}, &stored);
  contents.regions = stored.regions;
  contents.code = stored.image;
  contents.inputs = static_cast<int>(inputs.size());
  contents.outputs = static_cast<int>(outputs.size());
  return {compiler->object_file(contents), header_of(function, inputs, outputs)};
}

}  // namespace lamella::hlo

int32_t lamella_run_program(lamella_program* program, const void* const* inputs,
                            void* const* outputs) {
  using namespace lamella::hlo;
  try {
    run(*program, inputs, outputs);
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an unknown error";
  }
  return 1;
}
const char* lamella_program_error(void) { return lamella::hlo::last_error.c_str(); }
