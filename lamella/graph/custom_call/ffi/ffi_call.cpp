// Calling typed handlers.
//
// Note [Frames of typed calls]
//   All parts of a call frame except the addresses of data are known when a module is compiled, so
//   the frame is made then, and a run only writes addresses. Several threads may run an executable
//   at the same time, and a handler may run it recursively. A run that finds the frame in use takes
//   a spare copy, which is kept for later runs.
//   The state of the stage `instantiate` belongs to the call; states of `prepare` and `initialize`
//   belong to the run. `prepare` and `initialize` get buffers without data.
//   A call waits for the future that a handler returns, so operands and results stay valid.
//   On CUDA, buffers are device memory, filled before and read after the call (cuda_buffers.h).
#include "lamella/graph/custom_call/ffi/ffi_call.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/cuda_buffers.h"
#include "lamella/graph/custom_call/device_call.h"
#include "lamella/graph/custom_call/ffi/attributes.h"
#include "lamella/graph/custom_call/ffi/runtime.h"
#include "lamella/graph/custom_call/host_call.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

// The buffers of leaves, and the tables that a frame points to.
template <class Kind>
struct BufferTable {
  std::vector<ffi::Buffer> buffers;
  std::vector<void*> pointers;
  std::vector<Kind> kinds;

  explicit BufferTable(const std::vector<BufferLeaf>& leaves)
      : buffers(leaves.size()), pointers(leaves.size()), kinds(leaves.size(), Kind::Buffer) {
    for (size_t n = 0; n < leaves.size(); ++n) {
      const Shape& shape = *leaves[n].shape;
      ffi::Buffer& buffer = buffers[n];
      buffer.struct_size = LAMELLA_FFI_SIZE(ffi::Buffer, dims);
      buffer.dtype = ffi::data_type(shape.element_type());
      if (shape.is_array()) {
        buffer.rank = shape.rank();
        buffer.dims = const_cast<int64_t*>(shape.dimensions().data());
      }
      pointers[n] = &buffer;
    }
  }
};

class Frame {
 public:
  Frame(const CallBuffers& buffers, const ffi::Attrs& attrs, ffi::State* instantiated)
      : args(buffers.operands()), rets(buffers.results()) {
    context.states[0] = instantiated;
    call.struct_size = ffi::call_frame_size;
    call.api = ffi::api();
    call.ctx = &context;
    call.stage = ffi::Stage::Execute;
    call.args = {LAMELLA_FFI_SIZE(ffi::Args, args), nullptr,
                 static_cast<int64_t>(args.buffers.size()), args.kinds.data(),
                 args.pointers.data()};
    call.rets = {LAMELLA_FFI_SIZE(ffi::Rets, rets), nullptr,
                 static_cast<int64_t>(rets.buffers.size()), rets.kinds.data(),
                 rets.pointers.data()};
    call.attrs = attrs;
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  BufferTable<ffi::ArgType> args;
  BufferTable<ffi::RetType> rets;
  ffi::ExecutionContext context;
  ffi::CallFrame call{};
};

// The states of one run.
struct RunStates {
  ffi::State prepare;
  ffi::State initialize;
};

ffi::AttributeDictionary attributes_of(const Instruction& i) {
  try {
    return ffi::AttributeDictionary(opaque_of(i));
  } catch (const Error& e) {
    fail(i, e.msg());
  }
}
ffi::Handler* handler_of(void* function) { return reinterpret_cast<ffi::Handler*>(function); }

class TypedCall final : public PreparedCall {
 public:
  TypedCall(const Instruction& instruction, TargetPointer target)
      : instruction_(instruction),
        target_(std::move(target)),
        pins_(pins_of(*target_)),
        execute_(handler_of(target_->function)),
        has_run_stages_(target_->prepare != nullptr || target_->initialize != nullptr),
        attributes_(attributes_of(instruction)),
        buffers_(instruction),
        memory_(target_->platform == "CUDA" ? std::make_unique<CudaBuffers>(buffers_) : nullptr),
        frame_(buffers_, attributes_.attrs(), &instantiated_) {
    simple_ = memory_ == nullptr && buffers_.plain() && is_simple(*instruction.shape);
    for (const BufferLeaf& leaf : buffers_.results()) {
      result_bytes_.push_back(static_cast<size_t>(leaf.shape->bytes()));
    }
    if (memory_ != nullptr) frame_.context.device = &memory_->device();
    for (const Instruction* operand : instruction.operands) {
      simple_ = simple_ && operand->shape->is_array();
    }
    if (target_->instantiate != nullptr) {
      Frame first(buffers_, attributes_.attrs(), &instantiated_);
      first.call.stage = ffi::Stage::Instantiate;
      first.call.args.size = 0;
      first.call.rets.size = 0;
      invoke(first, handler_of(target_->instantiate), " at instantiate");
    }
  }

  bool joins_runs() const override { return has_run_stages_ || memory_ != nullptr; }
  void prepare_run(RunContext& context) override {
    if (memory_ != nullptr) context.stream = memory_->device().stream();
    if (!has_run_stages_) return;
    context.kept[this] = std::make_shared<RunStates>();
    run_stage(context, ffi::Stage::Prepare, target_->prepare, " at prepare");
  }
  void start_run(RunContext& context) override {
    run_stage(context, ffi::Stage::Initialize, target_->initialize, " at initialize");
  }

  Value run(std::span<Value> operands, RunContext& context) override {
    FrameLease lease(*this);
    Frame& frame = *lease.frame;
    frame.context.run = &context;
    if (has_run_stages_) set_states(frame, context);
    if (!simple_) return run_any(frame, operands);
    for (size_t n = 0; n < operands.size(); ++n) frame.args.buffers[n].data = operands[n].data();
    if (instruction_.shape->is_array()) {
      Value result = context.array(instruction_.shape, result_bytes_[0]);
      frame.rets.buffers[0].data = result.data();
      invoke(frame, execute_, "");
      return result;
    }
    std::array<Value, few> results;
    const std::vector<Shape>& shapes = instruction_.shape->tuple_shapes();
    for (size_t n = 0; n < shapes.size(); ++n) {
      results[n] = Value::uninitialized(&shapes[n], result_bytes_[n]);
      frame.rets.buffers[n].data = results[n].data();
    }
    invoke(frame, execute_, "");
    return Value::tuple(instruction_.shape, std::span(results).first(shapes.size()));
  }

  bool runs_on_device() const override { return memory_ != nullptr; }
  std::vector<TensorBase> run_on_device(std::span<const TensorBase> operands, Device device,
                                        RunContext& context) override {
    FrameLease lease(*this);
    Frame& frame = *lease.frame;
    frame.context.run = &context;
    if (has_run_stages_) set_states(frame, context);
    DeviceBuffers bound(buffers_, operands, device);
    set_data(frame, bound.operands(), bound.results());
    CudaDevice::Scope scope(memory_->device());
    invoke(frame, execute_, "");
    return bound.finish();
  }

 private:
  static constexpr size_t few = 8;

  // The first thread that calls owns frame_ and takes it without an atomic read-modify-write. Other
  // threads and recursive calls take spare frames.
  struct FrameLease {
    explicit FrameLease(TypedCall& of) : call(of) {
      void* me = __builtin_thread_pointer();
      void* owner = call.owner_.load(std::memory_order_relaxed);
      if (LAMELLA_UNLIKELY(owner == nullptr)) {
        if (call.owner_.compare_exchange_strong(owner, me)) owner = me;
      }
      if (LAMELLA_LIKELY(owner == me && !call.taken_)) {
        call.taken_ = true;
        frame = &call.frame_;
      } else {
        frame = call.take_spare();
      }
    }
    FrameLease(const FrameLease&) = delete;
    ~FrameLease() {
      if (LAMELLA_LIKELY(frame == &call.frame_)) {
        call.taken_ = false;
      } else {
        std::lock_guard<std::mutex> lock(call.mutex_);
        call.spare_.emplace_back(frame);
      }
    }
    TypedCall& call;
    Frame* frame;
  };
  LAMELLA_COLD Frame* take_spare() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) {
        Frame* one = spare_.back().release();
        spare_.pop_back();
        return one;
      }
    }
    auto* made = new Frame(buffers_, attributes_.attrs(), &instantiated_);
    made->context.device = frame_.context.device;
    return made;
  }

  // Pins the libraries of the handlers of all stages.
  static std::vector<Pin> pins_of(const Target& target) {
    std::vector<Pin> pins;
    for (void* function :
         {target.function, target.instantiate, target.prepare, target.initialize}) {
      if (function != nullptr) pins.emplace_back(function);
    }
    return pins;
  }

  static bool is_simple(const Shape& shape) {
    if (shape.is_array()) return true;
    if (!shape.is_tuple() || shape.tuple_shapes().size() > few) return false;
    for (const Shape& one : shape.tuple_shapes()) {
      if (!one.is_array()) return false;
    }
    return true;
  }

  // Calls the handler of a stage before the run, with buffers that have no data.
  void run_stage(RunContext& context, ffi::Stage stage, void* handler, std::string_view name) {
    if (handler == nullptr) return;
    Frame frame(buffers_, attributes_.attrs(), &instantiated_);
    frame.call.stage = stage;
    frame.context.device = frame_.context.device;
    frame.context.run = &context;
    set_states(frame, context);
    invoke(frame, handler_of(handler), name);
  }
  void set_states(Frame& frame, RunContext& context) const {
    auto* states = static_cast<RunStates*>(context.kept.at(this).get());
    frame.context.states[1] = &states->prepare;
    frame.context.states[2] = &states->initialize;
  }

  // The general case: tuples among the operands, nested results, tokens, layouts, aliasing, CUDA.
  Value run_any(Frame& frame, std::span<Value> operands) {
    BoundBuffers bound(buffers_, operands);
    if (memory_ == nullptr) {
      set_data(frame, bound.operands(), bound.results());
      invoke(frame, execute_, "");
      return bound.finish();
    }
    CudaBuffers::Use use(*memory_);
    size_t first = bound.operands().size();
    set_data(frame, use.pointers().first(first), use.pointers().subspan(first));
    // Errors of the handler name the instruction already; errors of the device do not.
    bool inside = false;
    try {
      use.around(bound, [&] {
        inside = true;
        invoke(frame, execute_, "");
        inside = false;
      });
    } catch (...) {
      if (inside) throw;
      fail_with_current_exception(instruction_, target_->name);
    }
    return bound.finish();
  }
  static void set_data(Frame& frame, std::span<void* const> operands,
                       std::span<void* const> results) {
    for (size_t n = 0; n < operands.size(); ++n) frame.args.buffers[n].data = operands[n];
    for (size_t n = 0; n < results.size(); ++n) frame.rets.buffers[n].data = results[n];
  }

  void invoke(Frame& frame, ffi::Handler* handler, std::string_view stage) {
    ffi::HandlerError* error = nullptr;
    frame.call.future = nullptr;
    try {
      error = handler(&frame.call);
    } catch (...) {
      fail_with_current_exception(instruction_, target_->name);
    }
    if (LAMELLA_UNLIKELY(frame.call.future != nullptr)) {
      std::unique_ptr<ffi::HandlerError> late = ffi::await(frame.call.future);
      if (error == nullptr) error = late.release();
    }
    if (LAMELLA_UNLIKELY(error != nullptr)) {
      fail(instruction_, "'", target_->name, "' failed", stage, ": ", ffi::take_message(error));
    }
  }

  const Instruction& instruction_;
  TargetPointer target_;
  std::vector<Pin> pins_;
  ffi::Handler* execute_;
  bool has_run_stages_;
  bool simple_ = false;
  ffi::State instantiated_;
  ffi::AttributeDictionary attributes_;
  CallBuffers buffers_;
  std::vector<size_t> result_bytes_;
  std::unique_ptr<CudaBuffers> memory_;  // of calls on CUDA
  Frame frame_;
  std::atomic<void*> owner_{nullptr};  // the thread that frame_ belongs to
  bool taken_ = false;                 // accessed by that thread only
  std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> spare_;
};

}  // namespace

std::unique_ptr<PreparedCall> prepare_typed_call(const Instruction& instruction,
                                                 TargetPointer target) {
  return std::make_unique<TypedCall>(instruction, std::move(target));
}

}  // namespace lamella::hlo
