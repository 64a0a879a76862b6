// Clients: running built computations (names are XLA's: Client, LocalClient, ClientLibrary).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamella/graph/builder/builder.h"
#include "lamella/graph/builder/shape_util.h"
#include "lamella/graph/client/buffer.h"
#include "lamella/graph/client/compile.h"

namespace lamella::hlo {

// A value that a client holds.
class GlobalData {
 public:
  explicit GlobalData(ShapedBuffer buffer) : buffer_(std::move(buffer)) {}
  const ShapedBuffer& buffer() const { return buffer_; }

 private:
  ShapedBuffer buffer_;
};

class ExecutionOptions {
 public:
  // The shape of the result says this layout. Elements of a literal lie row-major all the same.
  Shape* mutable_shape_with_output_layout() { return &shape_with_output_layout_; }
  const Shape& shape_with_output_layout() const { return shape_with_output_layout_; }

 private:
  Shape shape_with_output_layout_;
};
class ExecutionProfile {
 public:
  int64_t compute_time_ns() const { return compute_time_ns_; }
  void set_compute_time_ns(int64_t ns) { compute_time_ns_ = ns; }

 private:
  int64_t compute_time_ns_ = 0;
};

// The host's memory. Whatever is asked for, programs take theirs from Lamella's own allocator and
// run on the thread that calls; so there is nothing to choose, and this is where XLA's users look
// for it.
class DeviceMemoryAllocator {};
class Backend {
 public:
  DeviceMemoryAllocator* memory_allocator() { return &allocator_; }
  int device_count() const { return 1; }
  int default_device_ordinal() const { return 0; }
  // No threads of its own.
  const void* eigen_intra_op_thread_pool_device() const { return nullptr; }

 private:
  DeviceMemoryAllocator allocator_;
};

class ExecutableBuildOptions {
 public:
  // Device 0 is the only one; -1: any.
  ExecutableBuildOptions& set_device_ordinal(int ordinal) {
    device_ordinal_ = ordinal;
    return *this;
  }
  int device_ordinal() const { return device_ordinal_; }
  // Sizes and types must be the result's.
  ExecutableBuildOptions& set_result_layout(const Shape& shape_with_layout) {
    result_layout_ = shape_with_layout;
    return *this;
  }
  const Shape* result_layout() const { return result_layout_ ? &*result_layout_ : nullptr; }
  ExecutableBuildOptions& set_device_allocator(DeviceMemoryAllocator* allocator) {
    allocator_ = allocator;
    return *this;
  }
  DeviceMemoryAllocator* device_allocator() const { return allocator_; }
  // One is all there is; another number is an error of Compile.
  ExecutableBuildOptions& set_num_replicas(int count) {
    num_replicas_ = count;
    return *this;
  }
  int num_replicas() const { return num_replicas_; }

 private:
  int device_ordinal_ = -1;
  std::optional<Shape> result_layout_;
  DeviceMemoryAllocator* allocator_ = nullptr;
  int num_replicas_ = 1;
};
class ExecutableRunOptions {
 public:
  ExecutableRunOptions& set_device_ordinal(int ordinal) {
    device_ordinal_ = ordinal;
    return *this;
  }
  int device_ordinal() const { return device_ordinal_; }
  ExecutableRunOptions& set_allocator(DeviceMemoryAllocator* allocator) {
    allocator_ = allocator;
    return *this;
  }
  DeviceMemoryAllocator* allocator() const { return allocator_; }
  ExecutableRunOptions& set_intra_op_thread_pool(const void* pool) {
    intra_op_thread_pool_ = pool;
    return *this;
  }
  const void* intra_op_thread_pool() const { return intra_op_thread_pool_; }

 private:
  int device_ordinal_ = -1;
  DeviceMemoryAllocator* allocator_ = nullptr;
  const void* intra_op_thread_pool_ = nullptr;
};

// A computation made ready to run. Threads may run one at once.
class LocalExecutable {
 public:
  LocalExecutable(std::shared_ptr<const Executable> executable, ExecutableBuildOptions options)
      : executable_(std::move(executable)), options_(std::move(options)) {}
  // Arguments are as many as the computation's parameters and have their shapes, layouts aside.
  StatusOr<ScopedShapedBuffer> Run(Span<const ShapedBuffer*> arguments,
                                   ExecutableRunOptions run_options = {});
  const Executable* executable() const { return executable_.get(); }
  const ExecutableBuildOptions& build_options() const { return options_; }

 private:
  std::shared_ptr<const Executable> executable_;
  ExecutableBuildOptions options_;
};

class Client {
 public:
  explicit Client(CompileOptions options) : options_(std::move(options)) {}
  virtual ~Client() = default;

  // Copies.
  StatusOr<std::unique_ptr<GlobalData>> TransferToServer(const Literal& literal);
  StatusOr<Literal> Transfer(const GlobalData& data, const Shape* shape_with_layout = nullptr);

  // Compiles and runs; to run often, see LocalClient::Compile.
  StatusOr<std::unique_ptr<GlobalData>> Execute(const BuiltComputation& computation,
                                                Span<GlobalData*> arguments,
                                                const ExecutionOptions* execution_options = nullptr,
                                                ExecutionProfile* execution_profile = nullptr);
  StatusOr<Literal> ExecuteAndTransfer(const BuiltComputation& computation,
                                       Span<GlobalData*> arguments,
                                       const ExecutionOptions* execution_options = nullptr,
                                       ExecutionProfile* execution_profile = nullptr);
  // Computes what has no parameters, as Builder::BuildConstantSubGraph makes it.
  StatusOr<Literal> ComputeConstant(const BuiltComputation& computation,
                                    const Layout* output_layout = nullptr);

  // What an infeed of a program takes next.
  Status TransferToInfeed(const Literal& literal, int64_t replica_id = 0);
  // What an outfeed gave first; it must have this shape. An error where there is nothing.
  StatusOr<Literal> TransferFromOutfeed(const Shape* shape_with_layout, int64_t replica_id = 0);

  StatusOr<std::vector<std::unique_ptr<GlobalData>>> DeconstructTuple(const GlobalData& data);
  StatusOr<Shape> GetShape(const GlobalData& data);
  StatusOr<std::unique_ptr<ProgramShape>> GetComputationShape(const BuiltComputation& computation);

 protected:
  CompileOptions options_;
};

class LocalClient : public Client {
 public:
  using Client::Client;
  // One executable, for the one device. `argument_layouts` has a shape for each parameter.
  StatusOr<std::vector<std::unique_ptr<LocalExecutable>>> Compile(
      const BuiltComputation& computation, Span<const Shape*> argument_layouts,
      const ExecutableBuildOptions& options = {});

  StatusOr<ScopedShapedBuffer> LiteralToShapedBuffer(const Literal& literal, int device_ordinal = 0,
                                                     DeviceMemoryAllocator* allocator = nullptr);
  StatusOr<Literal> ShapedBufferToLiteral(const ShapedBuffer& shaped_buffer);

  Backend& backend() { return backend_; }
  int device_count() const { return 1; }
  int default_device_ordinal() const { return 0; }
  bool device_ordinal_supported(int device_ordinal) const { return device_ordinal == 0; }
  // Which registrations of custom calls it uses: "Host" or "CUDA".
  const std::string& platform() const { return options_.platform; }

 private:
  Backend backend_;
};

class LocalClientOptions {
 public:
  explicit LocalClientOptions(std::string platform = "Host") : platform_(std::move(platform)) {}
  LocalClientOptions& set_platform(std::string platform) {
    platform_ = std::move(platform);
    return *this;
  }
  const std::string& platform() const { return platform_; }

 private:
  std::string platform_;
};

class ClientLibrary {
 public:
  ClientLibrary() = delete;
  // One client for each platform; it stays.
  static StatusOr<LocalClient*> GetOrCreateLocalClient(
      const LocalClientOptions& options = LocalClientOptions());
  // Throws where there is none.
  static LocalClient* LocalClientOrDie(const LocalClientOptions& options = LocalClientOptions());
  // Forgets all clients; those that were given out are gone.
  static void DestroyLocalInstances();
};

}  // namespace lamella::hlo
