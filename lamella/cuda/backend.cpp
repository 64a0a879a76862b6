// Memory, copies, devices, streams and events of the devices "cuda", and their registration.
#include "lamella/cuda/backend.h"

#include <map>

#include "lamella/core/cuda_loading.h"
#include "lamella/cuda/allocator.h"
#include "lamella/cuda/families.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/math.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {

namespace {

Address address_of(lamella_place place) { return reinterpret_cast<Address>(place.data); }

// Runs after the work on both devices' streams, and before work that is launched on either later.
void copy_between(lamella_place to, lamella_place from, size_t bytes) {
  const int source = from.device_index, target = to.device_index;
  const int64_t source_stream = current().streams[source],
                target_stream = current().streams[target];
  Event ready(target, false), copied(source, false);
  ready.record(target, target_stream);
  ready.wait(source, source_stream);
  {
    ContextGuard guard(source);
    CUDA_CALL(cuMemcpyPeerAsync, address_of(to), Driver::context(target), address_of(from),
              Driver::context(source), bytes, handle_of(source, source_stream));
    after_launch(source, handle_of(source, source_stream));
  }
  copied.record(source, source_stream);
  copied.wait(target, target_stream);
}

void copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking) {
  const bool to_host = to.device_type == 0, from_host = from.device_type == 0;
  if (!to_host && !from_host && to.device_index != from.device_index) {
    return copy_between(to, from, bytes);
  }
  const int device = to_host ? from.device_index : to.device_index;
  const int64_t stream = current().streams[device];
  if (is_any_captured() && (to_host || from_host) &&
      (!non_blocking || !is_pinned(to_host ? to.data : from.data))) {
    check_not_captured(device, stream);
  }
  ContextGuard guard(device);
  StreamHandle handle = handle_of(device, stream);
  if (to_host) {
    CUDA_CALL(cuMemcpyDtoHAsync_v2, to.data, address_of(from), bytes, handle);
  } else if (from_host) {
    CUDA_CALL(cuMemcpyHtoDAsync_v2, address_of(to), from.data, bytes, handle);
  } else {
    CUDA_CALL(cuMemcpyDtoDAsync_v2, address_of(to), address_of(from), bytes, handle);
    return after_launch(device, handle);
  }
  if (non_blocking) {
    note_pinned_use(to_host ? to.data : from.data, device, stream);
    after_launch(device, handle);
  } else {
    CUDA_CALL(cuStreamSynchronize, handle);
    Driver::note_wait(device);
  }
}

Event& event_of(void* event) { return *static_cast<Event*>(event); }

// What lamella/core/backend.h requires of a backend.
struct Backend {
  void* allocate(size_t bytes, DeviceIndex device, void** block) {
    return cuda::allocate(bytes, device, current_stream(device), block);
  }
  void deallocate(void*, size_t, DeviceIndex, void* block) { cuda::deallocate(block); }
  void copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking) {
    cuda::copy(to, from, bytes, non_blocking);
  }

  int device_count() { return Driver::device_count(); }
  DeviceIndex current_device() { return static_cast<DeviceIndex>(current().device); }
  // Kernels that extensions launch run in the thread's context; see Note [Extensions and CUDA's
  // runtime].
  void set_device(DeviceIndex device) {
    current().device = device;
    if (Driver::has_context(device) && !Driver::is_forked()) Driver::enter(device);
  }
  int64_t current_stream(DeviceIndex device) { return current().streams[device]; }
  void set_stream(DeviceIndex device, int64_t stream) {
    handle_of(device, stream);  // checks the number
    current().streams[device] = stream;
  }
  int64_t make_stream(DeviceIndex device, int priority) {
    return cuda::make_stream(device, priority);
  }
  bool query_stream(DeviceIndex device, int64_t stream) {
    return cuda::query_stream(device, stream);
  }
  void synchronize_stream(DeviceIndex device, int64_t stream) {
    cuda::synchronize_stream(device, stream);
  }
  void synchronize_device(DeviceIndex device) { cuda::synchronize_device(device); }

  void* make_event(DeviceIndex device, bool timing) { return new Event(device, timing); }
  void free_event(void* event) { delete static_cast<Event*>(event); }
  void record_event(void* event, DeviceIndex device, int64_t stream) {
    event_of(event).record(device, stream);
  }
  void wait_event(void* event, DeviceIndex device, int64_t stream) {
    event_of(event).wait(device, stream);
  }
  bool query_event(void* event) { return event_of(event).query(); }
  void synchronize_event(void* event) { event_of(event).synchronize(); }
  double elapsed_time(void* start, void* end) {
    return event_of(start).elapsed_until(event_of(end));
  }
};

// ---- The fallback ----

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> of;
};
Counts& counts = *new Counts();

// The position of an operator's argument of type Generator?; -1: it has none.
int generator_at(const lamella_operator* op) {
  const std::string_view schema = lamella_operator_schema(op);
  const size_t at = schema.find("Generator? ");
  if (at == std::string_view::npos) return -1;
  int commas = 0, depth = 0;
  for (char c : schema.substr(schema.find('(') + 1, at - schema.find('(') - 1)) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    commas += c == ',' && depth == 0 ? 1 : 0;
  }
  // The "*" before arguments that have names counts as none.
  return commas - (schema.substr(0, at).find(" *,") != std::string_view::npos ? 1 : 0);
}
// The index of the device that a call is about.
DeviceIndex device_of_call(const lamella_operator* op, const lamella_value* arguments) {
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    if (arguments[i].tag == LAMELLA_DEVICE) {
      const Device device = IValue::unpack_device(arguments[i].as.i);
      if (device.is_cuda() && device.has_index()) return device.index();
    } else if (arguments[i].tag == LAMELLA_TENSOR && arguments[i].as.tensor != nullptr) {
      return arguments[i].as.tensor->device_index;
    }
  }
  return static_cast<DeviceIndex>(current().device);
}

}  // namespace

void count_fallback(const std::string& op) {
  std::lock_guard lock(counts.mutex);
  ++counts.of[op];
}
lamella_status counting_fallback(const lamella_kernel* kernel, const lamella_operator* op,
                                 uint64_t key_set, const lamella_value* arguments,
                                 lamella_value* returns) noexcept {
  for (uint32_t i = 0; i < op->return_count; ++i) returns[i] = lamella_value{{0}, 0, 0, 0, 0};
  const lamella_status status = lamella::detail::guarded([&] {
    Driver::check_process();
    if (is_any_captured()) {
      const DeviceIndex device = device_of_call(op, arguments);
      LAMELLA_CHECK(!is_captured(device, current().streams[device]),
                    "expected an operator with a kernel of CUDA while its stream is captured, got "
                    "one that runs on the CPU");
    }
    const bool overloaded = op->overload != nullptr && *op->overload != '\0';
    count_fallback(overloaded ? str(op->name, ".", op->overload) : std::string(op->name));
  });
  if (status != LAMELLA_OK) return status;
  const int at = generator_at(op);
  if (at < 0 || arguments[at].tag != LAMELLA_NONE) {
    return lamella_cpu_fallback(kernel, op, key_set, arguments, returns);
  }
  // Without a generator, the device's own is drawn from.
  return lamella::detail::guarded([&] {
    std::vector<lamella_value> given(arguments, arguments + op->argument_count);
    Generator generator =
        default_device_generator(Device(DeviceType::CUDA, device_of_call(op, arguments)));
    given[static_cast<size_t>(at)].tag = LAMELLA_GENERATOR;
    given[static_cast<size_t>(at)].as.pointer = generator.get();
    lamella::detail::check(lamella_cpu_fallback(kernel, op, key_set, given.data(), returns));
  });
}
std::string fallback_lines() {
  std::lock_guard lock(counts.mutex);
  std::string text;
  for (const auto& [op, count] : counts.of) text += str(op, " ", count, "\n");
  return text;
}
void reset_fallbacks() {
  std::lock_guard lock(counts.mutex);
  counts.of.clear();
}

lamella_status call_kernel_of_cpu(const lamella_operator* op, const lamella_value* arguments,
                                  lamella_value* returns) {
  const uint64_t cpu = DispatchKeySet(DispatchKey::CPU).raw_repr();
  return lamella::abi::call_boxed(op, cpu, arguments, returns);
}

// ---- Registration ----

namespace {

// The element is copied, instead of the operator's arguments.
Scalar local_scalar_dense(const Tensor& self) {
  const int device = self.device().index();
  check_not_captured(device, current().streams[device], "item: ");
  return self.to(kCPU).item();
}

// Never destroyed: tensors in static objects may be freed at any time.
struct Registered {
  Registered()
      : devices(backend_table(DeviceType::CUDA, "cuda", &backend)),
        everything(Library::IMPL, "_", DispatchKey::CUDA, __FILE__, __LINE__),
        aten(Library::IMPL, "aten", DispatchKey::CUDA, __FILE__, __LINE__) {
    everything.fallback(CppFunction::makeFromBoxedKernel(&counting_fallback));
    aten.impl("_local_scalar_dense", LAMELLA_FN(&local_scalar_dense));
    kernels.loops = register_pointwise(aten);
    kernels.lines = register_lines(aten);
    register_index(aten);
    register_select(aten);
    register_sort(aten);
    register_attention(aten);
    register_windows(aten);
    register_optimizer(aten);
    register_composites(aten);
    register_random(aten);
    kernels.math = register_math(aten);
    native::set_device_kernels(DeviceType::CUDA, &kernels);
    static constexpr PinnedMemory pinned{&allocate_pinned, &free_pinned};
    set_pinned_memory(&pinned);
  }
  Backend backend;
  BackendRegistration devices;
  Library everything, aten;
  native::DeviceKernels kernels;
};

}  // namespace
}  // namespace lamella::cuda

// Starts the driver and registers the devices. Returns NULL, or why there is no CUDA.
extern "C" __attribute__((visibility("default"))) const char* lamella_cuda_start() {
  static auto* problem = new std::string();
  try {
    *problem = lamella::cuda::Driver::start();
    if (problem->empty()) new lamella::cuda::Registered();
  } catch (const std::exception& error) {
    *problem = error.what();
  }
  return problem->empty() ? nullptr : problem->c_str();
}
