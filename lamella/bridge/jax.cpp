// The handlers of XLA's typed custom calls by which JAX calls any operator of Lamella. Primitives,
// their rules and the attributes of calls are made in Python (bridge/_jax.py).
//
// Note [A call from XLA]
//   One pair of handlers serves all operators and chains of transforms. When a program is compiled,
//   `instantiate` reads the attribute `call`, the text of a chain, and makes the plan of the call;
//   each run reads the plan alone. Buffers are the tensors of the chain. An operator with an `out`
//   form writes into XLA's buffers; otherwise results are copied there.
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "lamella/bridge/chain.h"
#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::bridge {
namespace {

namespace ffi = hlo::ffi;

// Lamella's number of each of XLA's element types, 255: none.
constexpr uint8_t kScalarTypes[] = {255, 11, 1,   2,   3, 4,  0,   27, 28, 29, 5,
                                    6,   7,  255, 255, 9, 15, 255, 10, 23, 24};

constexpr size_t kMostDirect = 12;  // values of a direct call

// Tensors over a call's buffers. The next call points them at its own.
struct CallTensors {
  lamella_tensor* all[kMostDirect];
  size_t count = 0;
  CallTensors() = default;
  CallTensors(const CallTensors&) = delete;
  CallTensors& operator=(const CallTensors&) = delete;
  ~CallTensors() {
    for (size_t k = 0; k < count; ++k) release(all[k]);
  }
  void set(size_t k, const void* buffer);
};

struct CallPlan {
  std::unique_ptr<Chain> chain;
  const lamella_operator* op = nullptr;
  const lamella_operator* out = nullptr;  // its form that writes given tensors
  // If run_directly() can make the call: the values of `out`, and which of them are buffers.
  bool is_direct = false;
  std::vector<lamella_value> values;
  std::vector<uint8_t> places;
  mutable std::atomic<CallTensors*> spare{nullptr};  // of the last call that returned
  ~CallPlan() { delete spare.load(); }
};

std::string_view call_of(const ffi::Attrs& attrs) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    const std::string_view name{attrs.names[i]->ptr, attrs.names[i]->len};
    if (name != "call" || attrs.types[i] != ffi::AttrType::String) continue;
    const auto& text = *static_cast<ffi::ByteSpan*>(attrs.attrs[i]);
    return {text.ptr, text.len};
  }
  throw Failure("bridge.jax: expected a text as the attribute 'call'");
}

// The form of the operator that has the same arguments and writes one tensor for each return.
const lamella_operator* out_form(const Chain& plan) {
  for (const Argument& one : plan.returns) {
    if (one.kind != Kind::kTensor) return nullptr;
  }
  const std::string overload = plan.op->overload;
  for (const std::string& name : {std::string("out"), overload + "_out"}) {
    const lamella_operator* out = lamella_lookup_operator(plan.op->name, name.c_str(), 1);
    if (out == nullptr || out->argument_count != plan.op->argument_count + plan.op->return_count) {
      continue;
    }
    const std::vector<Argument> arguments = arguments_of(out, 0);
    bool same = true;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& one = arguments[i];
      same &= i < plan.arguments.size() ? one.name == plan.arguments[i].name &&
                                              one.kind == plan.arguments[i].kind && !one.write
                                        : one.kind == Kind::kTensor && one.write;
    }
    if (same) return out;
  }
  return nullptr;
}

std::unique_ptr<CallPlan> plan_of(const ffi::Attrs& attrs) {
  auto plan = std::make_unique<CallPlan>();
  plan->chain = std::make_unique<Chain>(call_of(attrs));
  const Chain& chain = *plan->chain;
  plan->op = chain.op;
  if (!chain.transforms.empty()) return plan;
  plan->out = out_form(chain);
  uint16_t cpu = 0;
  check(lamella_dispatch_key_from_name("CPU", &cpu));
  plan->is_direct = plan->out != nullptr && plan->out->argument_count <= kMostDirect &&
                    lamella_operator_has_kernel(plan->out, cpu) != 0;
  if (!plan->is_direct) return plan;
  plan->values = chain.values;
  plan->values.resize(plan->out->argument_count);
  for (size_t i = 0; i < plan->values.size(); ++i) {
    const bool is_out = i >= chain.places.size();
    if (!is_out && !chain.places[i]) continue;
    plan->is_direct &= is_out || !chain.places[i]->is_list;
    plan->places.push_back(static_cast<uint8_t>(i));
  }
  return plan;
}

// A tensor over a buffer.
lamella_tensor* tensor_of(const void* buffer) {
  const auto& b = *static_cast<const ffi::Buffer*>(buffer);
  const auto type = static_cast<size_t>(b.dtype);
  if (type >= std::size(kScalarTypes) || kScalarTypes[type] == 255) {
    throw Failure("bridge.jax: expected an array of a dtype that Lamella has");
  }
  lamella_tensor* made = nullptr;
  check(lamella_tensor_from_blob(b.data, static_cast<int32_t>(b.rank), b.dims, nullptr,
                                 kScalarTypes[type], 0, -1, nullptr, nullptr, &made));
  return made;
}

void CallTensors::set(size_t k, const void* buffer) {
  const auto& b = *static_cast<const ffi::Buffer*>(buffer);
  if (k < count) {
    lamella_tensor* t = all[k];
    if (t->ndim == b.rank && std::equal(t->sizes, t->sizes + t->ndim, b.dims) &&
        lamella_tensor_move_blob(t, b.data) != 0) {
      return;
    }
    t = tensor_of(buffer);
    release(std::exchange(all[k], t));
    return;
  }
  all[k] = tensor_of(buffer);
  ++count;
}

struct OwnedTensors {
  explicit OwnedTensors(size_t most) : all(most) {}
  ~OwnedTensors() {
    for (lamella_tensor* t : all) release(t);
  }
  lamella_tensor* keep(lamella_tensor* t) { return all[count++] = t; }
  lamella_tensor* of(const void* buffer) { return keep(tensor_of(buffer)); }
  Scratch<lamella_tensor*> all;
  size_t count = 0;
};

// Copies a result into XLA's buffer, where it does not lie there.
void put(lamella_tensor* t, const void* buffer, const char* name) {
  const auto& b = *static_cast<const ffi::Buffer*>(buffer);
  const auto type = static_cast<size_t>(b.dtype);
  bool same =
      t->ndim == b.rank && type < std::size(kScalarTypes) && t->scalar_type == kScalarTypes[type];
  for (int32_t i = 0; same && i < t->ndim; ++i) same = t->sizes[i] == b.dims[i];
  if (!same) {
    throw Failure(
        std::string(name) +
        ": expected results of the shape and dtype that its Meta kernel says, got others");
  }
  if (t->data == b.data || t->numel == 0) return;
  constexpr uint32_t kLazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
  OwnedTensors own(1);
  if ((t->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0 || (t->flags & kLazy) != 0) {
    t = own.keep(copied(t));
  }
  static constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4,
                                       2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1,  1, 2, 4, 8};
  std::memcpy(b.data, t->data, static_cast<size_t>(t->numel) * kBytes[t->scalar_type]);
}

// The keys of a tensor on the CPU without those of autograd, which has no part in a program of XLA.
uint64_t keys_of_cpu() {
  static const uint64_t keys = [] {
    const uint32_t before = lamella_set_modes(LAMELLA_MODE_INFERENCE, LAMELLA_MODE_INFERENCE);
    lamella_tensor* t = nullptr;
    const lamella_status status = lamella_tensor_empty(0, nullptr, 6, 0, -1, &t);
    lamella_set_modes(LAMELLA_MODE_INFERENCE, before);
    check(status);
    const uint64_t found = t->key_set;
    release(t);
    return found;
  }();
  return keys;
}

// A call whose arguments are one buffer each or known, and whose results are written in place.
void run_directly(const CallPlan& plan, const ffi::CallFrame& frame) {
  lamella_value values[kMostDirect];
  struct Owned {
    lamella_value all[kMostDirect];
    const uint32_t count;
    explicit Owned(uint32_t count) : count(count) { std::fill_n(all, count, lamella_value{}); }
    ~Owned() {
      for (uint32_t r = 0; r < count; ++r) {
        if (all[r].tag == LAMELLA_TENSOR) release(all[r].as.tensor);
      }
    }
  };
  std::copy(plan.values.begin(), plan.values.end(), values);
  std::unique_ptr<CallTensors> tensors(plan.spare.exchange(nullptr, std::memory_order_acquire));
  if (tensors == nullptr) tensors = std::make_unique<CallTensors>();
  const auto arguments = static_cast<size_t>(frame.args.size);
  auto buffer = [&](size_t k) {
    return k < arguments ? frame.args.args[k] : frame.rets.rets[k - arguments];
  };
  for (size_t k = 0; k < plan.places.size(); ++k) {
    tensors->set(k, buffer(k));
    lamella_value& value = values[plan.places[k]];
    value.as.tensor = tensors->all[k];
    value.tag = LAMELLA_TENSOR;
  }
  {
    Owned results(plan.out->return_count);
    const lamella_status status =
        lamella_redispatch_boxed(plan.out, keys_of_cpu(), values, results.all);
    if (status != LAMELLA_OK) {
      std::fill_n(results.all, results.count, lamella_value{});
      check(status);
    }
  }
  for (size_t k = arguments; k < plan.places.size(); ++k) {
    put(tensors->all[k], buffer(k), plan.op->name);
  }
  delete plan.spare.exchange(tensors.release(), std::memory_order_acq_rel);
}

// Parallel loops of kernels run on XLA's threads for a block.
class XlaThreads {
 public:
  explicit XlaThreads(const ffi::CallFrame& frame) : frame_(frame) {
    if (frame.api->struct_size < LAMELLA_FFI_SIZE(ffi::Api, thread_pool_num_threads)) return;
    is_set_ = true;
    before_ = lamella_set_host_threads(&threads_);
  }
  ~XlaThreads() {
    if (is_set_) lamella_set_host_threads(before_);
  }
  XlaThreads(const XlaThreads&) = delete;
  XlaThreads& operator=(const XlaThreads&) = delete;

 private:
  // The tasks of one loop. A thread of XLA's that comes after the last of them finds none left.
  struct Work {
    void (*task)(void*, int32_t);
    void* job;
    int32_t tasks;
    std::atomic<int32_t> next{0}, left;
    Work(void (*task)(void*, int32_t), void* job, int32_t tasks)
        : task(task), job(job), tasks(tasks), left(tasks) {}
    void help() {
      for (int32_t n; (n = next.fetch_add(1)) < tasks;) {
        task(job, n);
        if (left.fetch_sub(1) == 1) left.notify_all();
      }
    }
  };
  bool failed(ffi::HandlerError* error) const {
    if (error == nullptr) return false;
    ffi::ErrorDestroyArgs args{};
    args.struct_size = sizeof args;
    args.error = error;
    frame_.api->error_destroy(&args);
    return true;
  }
  static void run(void* context, int32_t tasks, void (*task)(void*, int32_t), void* job) {
    const XlaThreads& self = *static_cast<XlaThreads*>(context);
    const auto work = std::make_shared<Work>(task, job, tasks);
    for (int32_t n = 1; n < tasks; ++n) {
      auto* share = new std::shared_ptr<Work>(work);
      ffi::ThreadPoolScheduleArgs args{};
      args.struct_size = sizeof args;
      args.ctx = self.frame_.ctx;
      args.data = share;
      args.task = [](void* data) {
        const std::unique_ptr<std::shared_ptr<Work>> own(static_cast<std::shared_ptr<Work>*>(data));
        (*own)->help();
      };
      if (self.failed(self.frame_.api->thread_pool_schedule(&args))) {
        delete share;
        break;
      }
    }
    work->help();  // all of it, if no other thread comes
    for (int32_t left; (left = work->left.load()) != 0;) work->left.wait(left);
  }
  static int32_t count(void* context) {
    const XlaThreads& self = *static_cast<XlaThreads*>(context);
    int64_t threads = 1;
    ffi::ThreadPoolNumThreadsArgs args{};
    args.struct_size = sizeof args;
    args.ctx = self.frame_.ctx;
    args.num_threads = &threads;
    if (self.failed(self.frame_.api->thread_pool_num_threads(&args))) return 1;
    return static_cast<int32_t>(threads);
  }
  const ffi::CallFrame& frame_;
  const lamella_host_threads threads_{&run, &count, this};
  const lamella_host_threads* before_ = nullptr;
  bool is_set_ = false;
};

void run(const CallPlan& plan, const ffi::CallFrame& frame) {
  if (plan.is_direct) return run_directly(plan, frame);
  OwnedTensors owned(static_cast<size_t>(frame.args.size));
  for (int64_t i = 0; i < frame.args.size; ++i) owned.of(frame.args.args[i]);
  const Tensors results = plan.chain->run({owned.all.data(), owned.all.size()});
  const auto wanted = static_cast<size_t>(frame.rets.size);
  const bool known = std::all_of(results.begin(), results.end(),
                                 [](const OwnedTensor& t) { return t.get() != nullptr; });
  if (results.size() != wanted || !known) {
    throw Failure(std::string(plan.op->name) + ": expected " + std::to_string(wanted) +
                  " results that are tensors");
  }
  for (size_t r = 0; r < wanted; ++r) put(results[r].get(), frame.rets.rets[r], plan.op->name);
}

ffi::TypeId plan_type{0};

void delete_plan(void* plan) { delete static_cast<CallPlan*>(plan); }
ffi::TypeInfo plan_info{sizeof(ffi::TypeInfo), nullptr, &delete_plan};

ffi::HandlerError* error_of(const ffi::Api* api, lamella_status status) {
  ffi::ErrorCreateArgs args{};
  args.struct_size = sizeof args;
  args.message = lamella_error_text();
  args.errc = status == LAMELLA_NOT_IMPLEMENTED  ? ffi::ErrorCode::Unimplemented
              : status == LAMELLA_OUT_OF_MEMORY  ? ffi::ErrorCode::ResourceExhausted
              : status == LAMELLA_INTERNAL_ERROR ? ffi::ErrorCode::Internal
                                                 : ffi::ErrorCode::InvalidArgument;
  return api->error_create(&args);
}

// True where the frame asks for the handler's description only, which is then filled in.
bool described(ffi::CallFrame* frame) {
  ffi::ExtensionBase* extension = frame->extension_start;
  if (extension == nullptr || extension->type != ffi::ExtensionType::Metadata) return false;
  ffi::Metadata* data = reinterpret_cast<ffi::MetadataExtension*>(extension)->metadata;
  data->api_version.major_version = ffi::api_major;
  data->api_version.minor_version = ffi::api_minor;
  data->traits = 0;
  if (data->struct_size >= LAMELLA_FFI_SIZE(ffi::Metadata, state_type_id)) {
    data->state_type_id = plan_type;
  }
  return true;
}

}  // namespace
}  // namespace lamella::bridge

using namespace lamella::bridge;
namespace ffi = lamella::hlo::ffi;

// The identity of plans among the states of handlers, to be registered with XLA.
LAMELLA_BRIDGE_API void* lamella_bridge_jax_type() { return &plan_type; }
LAMELLA_BRIDGE_API void* lamella_bridge_jax_type_info() { return &plan_info; }

LAMELLA_BRIDGE_API ffi::HandlerError* lamella_bridge_jax_instantiate(ffi::CallFrame* frame) {
  if (described(frame)) return nullptr;
  std::unique_ptr<CallPlan> plan;
  lamella_status status = guarded([&] { plan = plan_of(frame->attrs); });
  if (status != LAMELLA_OK) return error_of(frame->api, status);
  ffi::StateSetArgs args{};
  args.struct_size = sizeof args;
  args.ctx = frame->ctx;
  args.stage = ffi::Stage::Instantiate;
  args.type_id = &plan_type;
  args.state = plan.release();
  return frame->api->state_set(&args);
}

LAMELLA_BRIDGE_API ffi::HandlerError* lamella_bridge_jax_execute(ffi::CallFrame* frame) {
  if (described(frame)) return nullptr;
  ffi::StateGetArgs args{};
  args.struct_size = sizeof args;
  args.ctx = frame->ctx;
  args.stage = ffi::Stage::Instantiate;
  args.type_id = &plan_type;
  if (ffi::HandlerError* error = frame->api->state_get(&args)) return error;
  const XlaThreads threads(*frame);
  lamella_status status = guarded([&] { run(*static_cast<const CallPlan*>(args.state), *frame); });
  return status == LAMELLA_OK ? nullptr : error_of(frame->api, status);
}
