// Compiling programs, describing them, and their serialized form.
#include "lamella/pjrt/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lamella/graph/execute/digest.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/stablehlo/stablehlo.h"
#include "lamella/graph/view/cost.h"
#include "lamella/graph/view/memory.h"
#include "lamella/pjrt/callback.h"
#include "lamella/pjrt/compile_options.h"
#include "lamella/pjrt/status.h"

namespace lamella::pjrt {
namespace {

std::unique_ptr<hlo::Module> read_module(std::string_view code) {
  if (code.starts_with("HloModule")) return hlo::parse_module(code);
  return hlo::stablehlo::read(code);
}

// Parameters that the module gives away: those whose memory an output may take, and the
// buffer_donor of its header, "{ (0, {}), (3, {}) }".
std::vector<bool> donated_of(const hlo::Module& module) {
  std::vector<bool> donated(module.entry->parameters.size());
  auto add = [&](int64_t parameter) {
    if (parameter >= 0 && parameter < static_cast<int64_t>(donated.size())) {
      donated[static_cast<size_t>(parameter)] = true;
    }
  };
  for (const hlo::InputOutputAlias& alias : module.input_output_aliases) add(alias.parameter);
  for (const auto& [name, value] : module.attributes) {
    if (name != "buffer_donor") continue;
    std::string text(value);
    for (size_t at = text.find('('); at != std::string::npos; at = text.find('(', at + 1)) {
      add(std::strtoll(text.c_str() + at + 1, nullptr, 10));
    }
  }
  return donated;
}

// Estimates the nanoseconds of one run: each loop counts as 64 iterations, and a custom call as the
// decomposition of a matrix.
double duration(const hlo::Costs& costs, const hlo::Computation& of) {
  constexpr double kIterations = 64;
  double sum = 0;
  for (const hlo::Instruction* i : of.instructions) {
    const hlo::Cost& cost = costs.of(*i);
    switch (i->opcode) {
      case hlo::Opcode::While:
      case hlo::Opcode::Call:
      case hlo::Opcode::Conditional:
        hlo::for_each_called(*i, [&](const hlo::Computation& called) {
          sum +=
              (i->opcode == hlo::Opcode::While ? kIterations : 1) * (100 + duration(costs, called));
        });
        break;
      case hlo::Opcode::CustomCall:
        sum += 1000 + 0.01 * std::pow(cost.bytes / 4, 1.5);
        break;
      case hlo::Opcode::Sort:
        sum += 16 * cost.bytes;
        break;
      default:
        sum += 0.05 * cost.flops + cost.transcendentals + 0.1 * cost.bytes;
    }
  }
  return sum;
}
bool has_host_callback(const hlo::Module& module) {
  return std::ranges::any_of(module.computations, [](const hlo::Computation* computation) {
    return std::ranges::any_of(computation->instructions, [](const hlo::Instruction* i) {
      return i->opcode == hlo::Opcode::CustomCall && is_host_callback(*i);
    });
  });
}
// Below so many nanoseconds a run is done by the caller.
constexpr double kShort = 100e3;

constexpr std::string_view kMagic = "lamella program 1\n";
void put(std::string& to, std::string_view part) {
  uint64_t size = part.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof(size));
  to += part;
}
std::string take(std::string_view& from) {
  uint64_t size = 0;
  bool good = from.size() >= sizeof(size);
  if (good) std::memcpy(&size, from.data(), sizeof(size));
  good = good && size <= from.size() - sizeof(size);
  require(good, "PJRT_Executable_DeserializeAndLoad: expected a whole program");
  std::string part(from.substr(sizeof(size), size));
  from.remove_prefix(sizeof(size) + size);
  return part;
}

// XLA's programs for CPUs take subnormal numbers for zeros.
hlo::CompileOptions options_of_runs() {
  hlo::CompileOptions options;
  options.flush_subnormals = true;
  return options;
}

}  // namespace

Program::Program(std::string code, std::string options, hlo::StoredCode* stored)
    : code_(std::move(code)), options_(std::move(options)), assignment_(assignment_of(options_)) {
  std::shared_ptr<const hlo::Module> module = read_module(code_);
  describe(*module);
  estimate(*module);
  executable_ = hlo::make_executor(std::move(module), options_of_runs(), stored);
}
Program::~Program() {
  for (const auto* layouts : {&lists_.output_layouts, &lists_.parameter_layouts}) {
    for (MemoryLayout* layout : *layouts) delete layout;
  }
}

void Program::describe(const hlo::Module& module) {
  name_ = module.name;
  fingerprint_ = hlo::digest(str(platform_version(), "\n", options_, "\n", code_));
  const int64_t partitions = assignment_.partitions;
  if (partitions > 1) shardings_ = shardings_of(module, partitions);
  auto part = [](const hlo::Shape& shape, const std::vector<hlo::Sharding>& shardings, size_t i) {
    if (i >= shardings.size() || !shape.is_array()) return shape;
    return shape.with_dimensions(shardings[i].part_of(shape.dimensions()));
  };
  for (size_t i = 0; i < module.entry->parameters.size(); ++i) {
    const hlo::Shape* shape = module.entry->parameters[i]->shape;
    if (i < module.entry_parameter_layouts.size()) shape = module.entry_parameter_layouts[i];
    parameters_.push_back(std::make_shared<ArrayType>(part(*shape, shardings_.parameters, i)));
  }
  const hlo::Shape* result = module.entry->root->shape;
  if (module.entry_result_layout != nullptr) result = module.entry_result_layout;
  if (result->is_tuple()) {
    for (const hlo::Shape& shape : result->tuple_shapes()) {
      outputs_.push_back(
          std::make_shared<ArrayType>(part(shape, shardings_.outputs, outputs_.size())));
    }
  } else {
    outputs_.push_back(std::make_shared<ArrayType>(part(*result, shardings_.outputs, 0)));
  }
  donated_ = donated_of(module);
  donates_ = std::ranges::find(donated_, true) != donated_.end();
  auto kinds = [](const std::vector<ArrayTypePointer>& types, std::vector<const char*>* names,
                  std::vector<size_t>* sizes, std::vector<MemoryLayout*>* layouts) {
    for (const ArrayTypePointer& type : types) {
      names->push_back(kMemoryKinds[0]);
      sizes->push_back(std::strlen(kMemoryKinds[0]));
      layouts->push_back(new MemoryLayout{type->layout_text()});
    }
  };
  kinds(parameters_, &lists_.parameter_kinds, &lists_.parameter_kind_sizes,
        &lists_.parameter_layouts);
  kinds(outputs_, &lists_.output_kinds, &lists_.output_kind_sizes, &lists_.output_layouts);
  for (const ArrayTypePointer& type : outputs_) {
    lists_.types.push_back(type->number());
    List<const int64_t> dims = type->dims();
    lists_.ranks.push_back(dims.size);
    lists_.dimensions.insert(lists_.dimensions.end(), dims.data, dims.data + dims.size);
  }
}

void Program::estimate(const hlo::Module& module) {
  hlo::Costs costs(module);
  const hlo::Cost& cost = costs.of(*module.entry);
  auto add = [&](const char* name, double value) {
    NamedValue& one = lists_.costs.emplace_back();
    one.head = {sizeof(NamedValue), nullptr};
    one.name = {name, std::strlen(name)};
    one.kind = ValueKind::Float;
    one.number = static_cast<float>(value);
    one.size = 1;
  };
  add("flops", cost.flops);
  add("transcendentals", cost.transcendentals);
  add("bytes accessed", cost.bytes);
  lists_.peak = hlo::Memory(module).peak();
  is_short_ = duration(costs, *module.entry) < kShort && !has_host_callback(module);
}

namespace {

// A type as StableHLO writes it.
std::string mlir_type(const hlo::Shape& shape) {
  if (!shape.is_array()) return "!stablehlo.token";
  const hlo::ElementType type = shape.element_type();
  std::string name(hlo::element_name(type));
  if (type == hlo::ElementType::PRED) {
    name = "i1";
  } else if (hlo::is_complex(type)) {
    name = type == hlo::ElementType::C64 ? "complex<f32>" : "complex<f64>";
  } else if (hlo::is_integral(type)) {
    name = (name[0] == 'u' ? "ui" : "i") + name.substr(1);
  } else if (name.size() > 4) {  // f8E4M3FN
    std::transform(name.begin() + 1, name.end(), name.begin() + 1, ::toupper);
  }
  std::string text = "tensor<";
  for (int64_t size : shape.dimensions()) text += str(size, "x");
  return text + name + ">";
}

// As XLA states it.
std::string sharding_text(const hlo::Sharding& sharding, const hlo::Shape& shape) {
  if (sharding.terms > 1 && sharding.terms == static_cast<int64_t>(sharding.devices.size())) {
    return "{unreduced}";
  }
  return sharding.to_string(shape.is_array() ? shape.rank() : 0);
}

}  // namespace

// JAX reads the shapes and shardings of results from it, and the text for `as_text`. It is the
// program as given; of several partitions a program of one of them, which states these and is
// otherwise empty.
std::string Program::optimized() const {
  if (assignment_.partitions <= 1) return code_;
  const hlo::Computation& entry = *module().entry;
  std::string parameters, operands, types, results, of_parameters, of_results;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const char* comma = i != 0 ? ", " : "";
    const std::string type = mlir_type(parameters_[i]->shape());
    parameters += str(comma, "%arg", i, ": ", type);
    operands += str(comma, "%arg", i);
    types += comma + type;
    of_parameters +=
        str(comma, '"', sharding_text(shardings_.parameters[i], *entry.parameters[i]->shape), '"');
  }
  const hlo::Shape& result = *entry.root->shape;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const char* comma = i != 0 ? ", " : "";
    const hlo::Shape& shape = outputs_[i]->shape();
    results += comma + mlir_type(shape);
    of_results += comma + sharding_text(shardings_.outputs[i], shape);
  }
  if (result.is_tuple()) of_results = "{" + of_results + "}";
  std::string text =
      str("module @", name_, " attributes {mhlo.num_partitions = ", assignment_.partitions,
          " : i32, mhlo.num_replicas = ", assignment_.replicas,
          " : i32, mhlo.spmd_output_sharding = \"", of_results,
          "\", mhlo.spmd_parameters_shardings = [", of_parameters, "]} {\n",
          "  func.func public @main(", parameters, ") -> (", results, ") {\n");
  if (outputs_.empty()) {
    const std::string stated = "mhlo.spmd_output_sharding = \"{}\", ";
    text.erase(text.find(stated), stated.size());
    return text + "    return\n  }\n}\n";
  }
  std::string names;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    names += str(i != 0 ? ", " : "", "%0", outputs_.size() > 1 ? str("#", i) : "");
  }
  text += str("    %0", outputs_.size() > 1 ? str(":", outputs_.size()) : "",
              " = stablehlo.custom_call @lamella.program(", operands, ") : (", types, ") -> (",
              results, ")\n    return ", names, " : ", results, "\n  }\n}\n");
  return text;
}

std::string Program::serialized() const {
  // Compiled anew, mostly from the cache on disk, as the code is not kept as bytes.
  hlo::StoredCode stored;
  hlo::make_executor(executable_->shared_module(), options_of_runs(), &stored);
  std::string bytes(kMagic);
  for (std::string_view part :
       {std::string_view(platform_version()), std::string_view(code_), std::string_view(options_),
        std::string_view(stored.regions), std::string_view(stored.image)}) {
    put(bytes, part);
  }
  return bytes;
}
std::shared_ptr<Program> Program::deserialized(const std::string& bytes, std::string options) {
  std::string_view rest = bytes;
  require(rest.starts_with(kMagic),
          "PJRT_Executable_DeserializeAndLoad: expected a program of lamella");
  rest.remove_prefix(kMagic.size());
  std::string version = take(rest);
  require(version == platform_version(),
          "PJRT_Executable_DeserializeAndLoad: expected a program of ", platform_version(),
          ", got one of ", version, "; compile it again");
  std::string code = take(rest), own_options = take(rest);
  hlo::StoredCode stored;
  stored.regions = take(rest);
  stored.image = take(rest);
  return std::make_shared<Program>(
      std::move(code), options.empty() ? std::move(own_options) : std::move(options), &stored);
}

LoadedExecutable::LoadedExecutable(Client* of, ProgramPointer loads)
    : program(std::move(loads)), client(of), fingerprint(program->fingerprint()) {
  const Assignment& assignment = program->assignment();
  for (int i = 0; i < assignment.count(); ++i) {
    devices.push_back(client->device(assignment.device(i)));
    logical.push_back({i / assignment.partitions, i % assignment.partitions});
  }
}
const ProgramPointer& LoadedExecutable::live_program() const {
  require(program != nullptr, "lamella: expected an executable that is not deleted");
  return program;
}

}  // namespace lamella::pjrt
