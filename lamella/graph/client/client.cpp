// Clients: running built computations.
#include "lamella/graph/client/client.h"

#include <chrono>
#include <map>
#include <mutex>

#include "lamella/graph/runtime/transfer.h"

namespace lamella::hlo {
namespace {

// Runs `work` and converts exceptions to an InvalidArgument status.
template <class F>
auto checked(F&& work) -> StatusOr<std::invoke_result_t<F>> {
  try {
    return work();
  } catch (const std::exception& error) {
    return Status(StatusCode::kInvalidArgument, error.what());
  }
}
const std::shared_ptr<const Module>& module_of(const BuiltComputation& computation,
                                               const char* function) {
  LAMELLA_CHECK(!computation.IsNull(), function, ": expected a computation, got null");
  return computation.module();
}
void require_device(int ordinal, const char* function) {
  LAMELLA_CHECK(ordinal == 0 || ordinal == -1, function, ": expected device 0, got ", ordinal);
}
ShapedBuffer run(const Executable& executable, std::span<const Value> arguments) {
  // Results of dynamic size have shapes of their own, which the literal's copy keeps.
  if (!executable.module().entry->root->shape->is_static()) {
    return ShapedBuffer(executable.run(arguments).to_literal());
  }
  return {executable.run(arguments), executable.module().entry->root->shape,
          executable.shared_module()};
}
// The literal with the layout of `shape`; elements stay row-major.
Literal laid_out(Literal literal, const Shape& shape, const char* function) {
  LAMELLA_CHECK(shape.compatible(literal.shape()), function, ": expected a layout of ",
                literal.shape().to_string(false), ", got ", shape.to_string(false));
  Literal made(shape);
  auto copy = [](auto&& self, Literal& from, Literal& to) -> void {
    if (from.bytes() != 0) std::memcpy(to.data(), from.data(), from.bytes());
    for (size_t i = 0; i < from.elements().size(); ++i) {
      self(self, from.elements()[i], to.elements()[i]);
    }
  };
  copy(copy, literal, made);
  return made;
}

}  // namespace

StatusOr<ScopedShapedBuffer> LocalExecutable::Run(Span<const ShapedBuffer*> arguments,
                                                  ExecutableRunOptions run_options) {
  return checked([&] {
    require_device(run_options.device_ordinal(), "Run");
    std::vector<Value> values;
    for (const ShapedBuffer* argument : arguments) {
      LAMELLA_CHECK(argument != nullptr && argument->value(), "Run: expected argument ",
                    values.size(), " to be a buffer, got null");
      values.push_back(argument->value());
    }
    return run(*executable_, values);
  });
}

StatusOr<std::unique_ptr<GlobalData>> Client::TransferToServer(const Literal& literal) {
  return checked([&] { return std::make_unique<GlobalData>(ShapedBuffer(literal)); });
}
StatusOr<Literal> Client::Transfer(const GlobalData& data, const Shape* shape_with_layout) {
  return checked([&] {
    Literal literal = data.buffer().to_literal();
    if (shape_with_layout == nullptr) return literal;
    return laid_out(std::move(literal), *shape_with_layout, "Transfer");
  });
}

StatusOr<std::unique_ptr<GlobalData>> Client::Execute(const BuiltComputation& computation,
                                                      Span<GlobalData*> arguments,
                                                      const ExecutionOptions* /*layouts*/,
                                                      ExecutionProfile* execution_profile) {
  return checked([&] {
    std::unique_ptr<Executable> executable = compile(module_of(computation, "Execute"), options_);
    std::vector<Value> values;
    for (const GlobalData* argument : arguments) {
      LAMELLA_CHECK(argument != nullptr, "Execute: expected argument ", values.size(),
                    " to be data, got null");
      values.push_back(argument->buffer().value());
    }
    auto begin = std::chrono::steady_clock::now();
    auto made = std::make_unique<GlobalData>(run(*executable, values));
    std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    if (execution_profile != nullptr) execution_profile->set_compute_time_ns(took.count());
    return made;
  });
}
StatusOr<Literal> Client::ExecuteAndTransfer(const BuiltComputation& computation,
                                             Span<GlobalData*> arguments,
                                             const ExecutionOptions* execution_options,
                                             ExecutionProfile* execution_profile) {
  auto data = Execute(computation, arguments, execution_options, execution_profile);
  if (!data.ok()) return data.status();
  const Shape* shape = nullptr;
  if (execution_options != nullptr && execution_options->shape_with_output_layout().is_valid()) {
    shape = &execution_options->shape_with_output_layout();
  }
  return Transfer(**data, shape);
}
StatusOr<Literal> Client::ComputeConstant(const BuiltComputation& computation,
                                          const Layout* output_layout) {
  return checked([&] {
    const Module& module = *module_of(computation, "ComputeConstant");
    LAMELLA_CHECK(module.entry->parameters.empty(),
                  "ComputeConstant: expected a computation without parameters, got ",
                  module.entry->parameters.size());
    Literal literal = ExecuteAndTransfer(computation, {}).value();
    if (output_layout == nullptr) return literal;
    Shape shape = literal.shape();
    shape.set_layout(output_layout->minor_to_major());
    return laid_out(std::move(literal), shape, "ComputeConstant");
  });
}

Status Client::TransferToInfeed(const Literal& literal, int64_t replica_id) {
  if (replica_id != 0) {
    return {StatusCode::kInvalidArgument,
            str("TransferToInfeed: expected replica 0, got ", replica_id)};
  }
  transfers().infeed().put(literal.clone());
  return {};
}
StatusOr<Literal> Client::TransferFromOutfeed(const Shape* shape_with_layout, int64_t replica_id) {
  return checked([&] {
    LAMELLA_CHECK(replica_id == 0, "TransferFromOutfeed: expected replica 0, got ", replica_id);
    std::optional<Literal> first = transfers().outfeed().take(transfers().patience());
    LAMELLA_CHECK(first.has_value(), "TransferFromOutfeed: expected a literal in the queue, got ",
                  "nothing");
    if (shape_with_layout == nullptr) return *std::move(first);
    return laid_out(*std::move(first), *shape_with_layout, "TransferFromOutfeed");
  });
}

StatusOr<std::vector<std::unique_ptr<GlobalData>>> Client::DeconstructTuple(
    const GlobalData& data) {
  return checked([&] {
    const Shape& shape = data.buffer().on_host_shape();
    LAMELLA_CHECK(shape.is_tuple(), "DeconstructTuple: expected a tuple, got ",
                  shape.to_string(false));
    std::vector<std::unique_ptr<GlobalData>> parts;
    for (int64_t i = 0; i < shape.tuple_shapes_size(); ++i) {
      parts.push_back(
          std::make_unique<GlobalData>(data.buffer().SubShapedBuffer(std::span(&i, size_t{1}))));
    }
    return parts;
  });
}
StatusOr<Shape> Client::GetShape(const GlobalData& data) { return data.buffer().on_host_shape(); }
StatusOr<std::unique_ptr<ProgramShape>> Client::GetComputationShape(
    const BuiltComputation& computation) {
  return checked([&] {
    return std::make_unique<ProgramShape>(*module_of(computation, "GetComputationShape")->entry);
  });
}

StatusOr<std::vector<std::unique_ptr<LocalExecutable>>> LocalClient::Compile(
    const BuiltComputation& computation, Span<const Shape*> argument_layouts,
    const ExecutableBuildOptions& options) {
  return checked([&] {
    const std::shared_ptr<const Module>& module = module_of(computation, "Compile");
    require_device(options.device_ordinal(), "Compile");
    LAMELLA_CHECK(options.num_replicas() == 1, "Compile: expected 1 replica, got ",
                  options.num_replicas());
    const std::vector<Instruction*>& parameters = module->entry->parameters;
    LAMELLA_CHECK(argument_layouts.size() == parameters.size(),
                  "Compile: expected a layout for each of ", parameters.size(), " parameters, got ",
                  argument_layouts.size());
    for (size_t p = 0; p < parameters.size(); ++p) {
      LAMELLA_CHECK(
          argument_layouts[p] != nullptr && argument_layouts[p]->compatible(*parameters[p]->shape),
          "Compile: expected a layout of ", parameters[p]->shape->to_string(false),
          " for parameter ", p, ", got ",
          argument_layouts[p] == nullptr ? "null" : argument_layouts[p]->to_string(false));
    }
    const Shape& result = *module->entry->root->shape;
    LAMELLA_CHECK(options.result_layout() == nullptr || options.result_layout()->compatible(result),
                  "Compile: expected a layout of ", result.to_string(false), ", got ",
                  options.result_layout()->to_string(false));
    std::vector<std::unique_ptr<LocalExecutable>> made;
    made.push_back(std::make_unique<LocalExecutable>(compile(module, options_), options));
    return made;
  });
}
StatusOr<ScopedShapedBuffer> LocalClient::LiteralToShapedBuffer(const Literal& literal,
                                                                int device_ordinal,
                                                                DeviceMemoryAllocator*) {
  return checked([&] {
    require_device(device_ordinal, "LiteralToShapedBuffer");
    return ShapedBuffer(literal);
  });
}
StatusOr<Literal> LocalClient::ShapedBufferToLiteral(const ShapedBuffer& shaped_buffer) {
  return checked([&] {
    LAMELLA_CHECK(shaped_buffer.value(), "ShapedBufferToLiteral: expected a buffer, got null");
    return shaped_buffer.to_literal();
  });
}

namespace {

std::mutex clients_mutex;
std::map<std::string, std::unique_ptr<LocalClient>>& clients() {
  static auto* all = new std::map<std::string, std::unique_ptr<LocalClient>>;
  return *all;
}

}  // namespace

StatusOr<LocalClient*> ClientLibrary::GetOrCreateLocalClient(const LocalClientOptions& options) {
  if (options.platform() != "Host" && options.platform() != "CUDA") {
    return Status(StatusCode::kNotFound,
                  str("GetOrCreateLocalClient: expected the platform Host or CUDA, got '",
                      options.platform(), "'"));
  }
  std::lock_guard lock(clients_mutex);
  std::unique_ptr<LocalClient>& one = clients()[options.platform()];
  if (one == nullptr) {
    CompileOptions compile_options;
    compile_options.platform = options.platform();
    one = std::make_unique<LocalClient>(compile_options);
  }
  return one.get();
}
LocalClient* ClientLibrary::LocalClientOrDie(const LocalClientOptions& options) {
  return GetOrCreateLocalClient(options).value();
}
void ClientLibrary::DestroyLocalInstances() {
  std::lock_guard lock(clients_mutex);
  clients().clear();
}

}  // namespace lamella::hlo
