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

// A value that a client keeps between runs.
class GlobalData {
 public:
  explicit GlobalData(ShapedBuffer buffer) : buffer_(std::move(buffer)) {}
  const ShapedBuffer& buffer() const { return buffer_; }

 private:
  ShapedBuffer buffer_;
};

class ExecutionOptions {
 public:
  // The layout that the result's shape will state. The elements of a literal stay row-major.
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

// These classes exist for compatibility with XLA and select nothing: programs always take host
// memory from Lamella's allocator and run on the calling thread.
class DeviceMemoryAllocator {};
class Backend {
 public:
  DeviceMemoryAllocator* memory_allocator() { return &allocator_; }
  int device_count() const { return 1; }
  int default_device_ordinal() const { return 0; }
  // Always NULL: the backend has no threads of its own.
  const void* eigen_intra_op_thread_pool_device() const { return nullptr; }

 private:
  DeviceMemoryAllocator allocator_;
};

class ExecutableBuildOptions {
 public:
  // Device 0 is the only device; -1 means any device.
  ExecutableBuildOptions& set_device_ordinal(int ordinal) {
    device_ordinal_ = ordinal;
    return *this;
  }
  int device_ordinal() const { return device_ordinal_; }
  // The shape must have the sizes and element types of the result.
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
  // Compile fails for any number other than 1.
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

// A compiled computation. Several threads may run one at the same time.
class LocalExecutable {
 public:
  LocalExecutable(std::shared_ptr<const Executable> executable, ExecutableBuildOptions options)
      : executable_(std::move(executable)), options_(std::move(options)) {}
  // There must be one argument for each parameter, with its shape; layouts may differ.
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

  // Copy the data to and from the server.
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
  // Computes a computation without parameters, such as Builder::BuildConstantSubGraph makes.
  StatusOr<Literal> ComputeConstant(const BuiltComputation& computation,
                                    const Layout* output_layout = nullptr);

  // Adds a literal to the queue that the infeed instructions of programs read.
  Status TransferToInfeed(const Literal& literal, int64_t replica_id = 0);
  // Takes the oldest literal of an outfeed, which must have this shape. Fails if there is none.
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
  // Returns one executable, for the only device. `argument_layouts` has a shape per parameter.
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
  // The platform whose custom-call registrations are used: "Host" or "CUDA".
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
  // Returns the client of a platform, which lives until DestroyLocalInstances().
  static StatusOr<LocalClient*> GetOrCreateLocalClient(
      const LocalClientOptions& options = LocalClientOptions());
  // Throws if the client cannot be created.
  static LocalClient* LocalClientOrDie(const LocalClientOptions& options = LocalClientOptions());
  // Destroys all clients; pointers to them become invalid.
  static void DestroyLocalInstances();
};

}  // namespace lamella::hlo
