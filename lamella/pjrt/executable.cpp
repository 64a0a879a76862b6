// Executables: PJRT's functions on compiled programs, but for running them.
#include <algorithm>
#include <cstring>

#include "lamella/pjrt/compile_options.h"
#include "lamella/pjrt/functions.h"
#include "lamella/pjrt/program.h"
#include "lamella/pjrt/status.h"

namespace lamella::pjrt {
namespace {

ProgramPointer compiled(const ProgramText& program, const Text& options) {
  std::string format = text_of(program.format);
  require(format == "mlir" || format == "hlo",
          "PJRT_Client_Compile: expected the format mlir, got '", format, "'");
  return std::make_shared<Program>(std::string(program.code, program.code_size), text_of(options));
}
const Program& of(const Executable* executable) { return *executable->program; }

}  // namespace

void client_compile(ClientCompileArgs& args) {
  args.executable = new LoadedExecutable(args.client, compiled(*args.program, args.options));
}
void compile(CompileArgs& args) {
  args.executable = new Executable{compiled(*args.program, args.options)};
}
void client_load(ClientLoadArgs& args) {
  args.loaded = new LoadedExecutable(args.client, args.executable->program);
}
void executable_destroy(ExecutableDestroyArgs& args) { delete args.executable; }
void loaded_executable_destroy(LoadedExecutableDestroyArgs& args) { delete args.executable; }
void loaded_executable_delete(LoadedExecutableDeleteArgs& args) {
  args.executable->program.reset();
}
void loaded_executable_is_deleted(LoadedExecutableIsDeletedArgs& args) {
  args.is_deleted = args.executable->program == nullptr;
}
void loaded_executable_get_executable(LoadedExecutableGetExecutableArgs& args) {
  args.executable = new Executable{args.loaded->live_program()};
}
void loaded_executable_addressable_devices(LoadedExecutableAddressableDevicesArgs& args) {
  args.devices = {args.executable->devices.data(), args.executable->devices.size()};
}
void loaded_executable_addressable_device_logical_ids(
    LoadedExecutableAddressableDeviceLogicalIdsArgs& args) {
  args.ids = {args.executable->logical.data(), args.executable->logical.size()};
}
void loaded_executable_get_device_assignment(LoadedExecutableGetDeviceAssignmentArgs& args) {
  hand_out(device_assignment_proto(args.executable->live_program()->assignment()), args);
}
void loaded_executable_fingerprint(LoadedExecutableFingerprintArgs& args) {
  args.text = borrow(args.executable->fingerprint);
}

void executable_name(ExecutableNameArgs& args) { args.text = borrow(of(args.executable).name()); }
void executable_fingerprint(ExecutableFingerprintArgs& args) {
  args.text = borrow(of(args.executable).fingerprint());
}
void executable_num_replicas(ExecutableCountArgs& args) {
  args.count = static_cast<size_t>(of(args.executable).assignment().replicas);
}
void executable_num_partitions(ExecutableCountArgs& args) {
  args.count = static_cast<size_t>(of(args.executable).assignment().partitions);
}
void executable_num_outputs(ExecutableCountArgs& args) {
  args.count = of(args.executable).outputs().size();
}
void executable_size_of_generated_code_in_bytes(ExecutableSizeOfGeneratedCodeInBytesArgs& args) {
  args.bytes = 0;  // unknown
}
void executable_output_element_types(ExecutableOutputElementTypesArgs& args) {
  const Program::Lists& lists = of(args.executable).lists();
  args.types = {lists.types.data(), lists.types.size()};
}
void executable_output_dimensions(ExecutableOutputDimensionsArgs& args) {
  const Program::Lists& lists = of(args.executable).lists();
  args.count = lists.ranks.size();
  args.dimensions = lists.dimensions.data();
  args.ranks = lists.ranks.data();
}
void executable_parameter_memory_kinds(ExecutableMemoryKindsArgs& args) {
  const Program::Lists& lists = of(args.executable).lists();
  args.count = lists.parameter_kinds.size();
  args.kinds = lists.parameter_kinds.data();
  args.sizes = lists.parameter_kind_sizes.data();
}
void executable_output_memory_kinds(ExecutableMemoryKindsArgs& args) {
  const Program::Lists& lists = of(args.executable).lists();
  args.count = lists.output_kinds.size();
  args.kinds = lists.output_kinds.data();
  args.sizes = lists.output_kind_sizes.data();
}
void executable_get_cost_analysis(ExecutableGetCostAnalysisArgs& args) {
  const std::vector<NamedValue>& costs = of(args.executable).lists().costs;
  args.count = costs.size();
  args.properties = costs.data();
}
void executable_get_compiled_memory_stats(ExecutableGetCompiledMemoryStatsArgs& args) {
  const Program& program = of(args.executable);
  auto sum = [](const std::vector<ArrayTypePointer>& types) {
    int64_t bytes = 0;
    for (const ArrayTypePointer& type : types) bytes += static_cast<int64_t>(type->bytes());
    return bytes;
  };
  // Callers of older versions have room for fewer numbers.
  for (int64_t* one = &args.generated_code; one <= &args.peak_unpadded_heap; ++one) {
    if (has(&args, one)) *one = 0;
  }
  args.arguments = sum(program.parameters());
  args.outputs = sum(program.outputs());
  for (size_t p = 0; p < program.parameters().size(); ++p) {
    if (program.may_donate(p))
      args.aliased += static_cast<int64_t>(program.parameters()[p]->bytes());
  }
  args.aliased = std::min(args.aliased, args.outputs);
  // The peak counts the outputs, which live to the end, and not the arguments.
  int64_t peak = std::max(program.lists().peak, args.outputs);
  args.temporary = peak - args.outputs;
  int64_t total = args.arguments + peak - args.aliased;
  for (int64_t* one : {&args.peak, &args.total, &args.total_allocation}) {
    if (has(&args, one)) *one = total;
  }
  if (has(&args, &args.peak_unpadded_heap)) args.peak_unpadded_heap = peak;
}
void executable_optimized_program(ExecutableOptimizedProgramArgs& args) {
  const std::string code = of(args.executable).optimized();
  ProgramText& program = *args.program;
  program.format = {"mlir", 4};
  if (program.code == nullptr) {
    program.code_size = code.size();
    return;
  }
  require(program.code_size >= code.size(), "PJRT_Executable_OptimizedProgram: expected room for ",
          code.size(), " bytes, got ", program.code_size);
  std::memcpy(program.code, code.data(), code.size());
}

// ---- Serialized --------------------------------------------------------------------------------

void executable_serialize(ExecutableSerializeArgs& args) {
  hand_out(of(args.executable).serialized(), args);
}
void executable_get_compile_options(ExecutableGetCompileOptionsArgs& args) {
  hand_out(of(args.executable).options(), args);
}
void executable_deserialize_and_load(ExecutableDeserializeAndLoadArgs& args) {
  std::string options;
  if (has(&args, &args.options) && args.options.data != nullptr) options = text_of(args.options);
  args.loaded = new LoadedExecutable(
      args.client, Program::deserialized(text_of(args.serialized), std::move(options)));
}

}  // namespace lamella::pjrt
