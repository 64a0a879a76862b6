// Custom calls of plain functions on the host.
//
// Note [Opaque on the host]
//   The original host convention and its status-returning form have no parameter for the opaque
//   bytes, and a function must not be called with more arguments than it declares. So opaque is
//   passed only with API_VERSION_STATUS_RETURNING_UNIFIED, whose signature has it; with the other
//   two it stays with the instruction and is not passed, as in XLA.
#include "lamella/graph/custom_call/host_call.h"

#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/status.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

using Original = void (*)(void* out, const void** in);
using StatusReturning = void (*)(void* out, const void** in, XlaCustomCallStatus* status);
using Unified = void (*)(void* out, const void** in, const char* opaque, size_t opaque_len,
                         XlaCustomCallStatus* status);

int64_t table_slots(const Shape& shape) {
  if (!shape.is_tuple()) return 0;
  auto slots = static_cast<int64_t>(shape.tuple_shapes().size());
  for (const Shape& one : shape.tuple_shapes()) slots += table_slots(one);
  return slots;
}

// Builds the pointer tables of tuples from the leaves' pointers.
class Tables {
 public:
  explicit Tables(int64_t slots) { slots_.reserve(static_cast<size_t>(slots)); }
  void* make(const Shape& shape, std::span<void* const>* leaves) {
    if (!shape.is_tuple()) {
      void* leaf = leaves->front();
      *leaves = leaves->subspan(1);
      return leaf;
    }
    // The capacity was reserved, so earlier tables do not move.
    size_t begin = slots_.size();
    slots_.resize(begin + shape.tuple_shapes().size());
    for (size_t n = 0; n < shape.tuple_shapes().size(); ++n) {
      slots_[begin + n] = make(shape.tuple_shapes()[n], leaves);
    }
    return slots_.data() + begin;
  }

 private:
  std::vector<void*> slots_;
};

class HostCall final : public PreparedCall {
 public:
  HostCall(const Instruction& instruction, TargetPointer target, ApiVersion version)
      : instruction_(instruction),
        target_(std::move(target)),
        pin_(target_->function),
        version_(version),
        opaque_(opaque_of(instruction)),
        buffers_(instruction) {
    single_ = buffers_.plain() && instruction.shape->is_array();
    bytes_ = static_cast<size_t>(instruction.shape->bytes());
    for (const Instruction* operand : instruction.operands) {
      slots_ += table_slots(*operand->shape);
    }
    slots_ += table_slots(*instruction.shape);
  }

  Value run(std::span<Value> operands, RunContext& context) override {
    if (single_ && operands.size() <= kMaxInlineOperands) {
      Value result = context.array(instruction_.shape, bytes_);
      const void* in[kMaxInlineOperands];
      for (size_t n = 0; n < operands.size(); ++n) in[n] = operands[n].data();
      call(result.data(), in);
      return result;
    }
    return run_any(operands);
  }

 private:
  static constexpr size_t kMaxInlineOperands = 16;

  Value run_any(std::span<Value> operands) {
    BoundBuffers bound(buffers_, operands);
    Tables tables(slots_);
    std::vector<const void*> in(operands.size());
    std::span<void* const> leaves = bound.operands();
    for (size_t n = 0; n < operands.size(); ++n) {
      in[n] = tables.make(instruction_.operand_shape(n), &leaves);
    }
    leaves = bound.results();
    call(tables.make(*instruction_.shape, &leaves), in.data());
    return bound.finish();
  }

  void call(void* out, const void** in) {
    void* function = target_->function;
    try {
      if (version_ == ApiVersion::Original) {
        reinterpret_cast<Original>(function)(out, in);
        return;
      }
      XlaCustomCallStatus_ status;
      if (version_ == ApiVersion::StatusReturning) {
        reinterpret_cast<StatusReturning>(function)(out, in, &status);
      } else {
        reinterpret_cast<Unified>(function)(out, in, opaque_.data(), opaque_.size(), &status);
      }
      if (LAMELLA_LIKELY(!status.failed)) return;
      throw Error(std::move(status.message));
    } catch (...) {
      fail_with_current_exception(instruction_, target_->name);
    }
  }

  const Instruction& instruction_;
  TargetPointer target_;
  Pin pin_;
  ApiVersion version_;
  std::string opaque_;
  CallBuffers buffers_;
  bool single_;   // the result is one array, and the buffers are plain
  size_t bytes_;  // of the result
  int64_t slots_ = 0;
};

}  // namespace

std::unique_ptr<PreparedCall> prepare_host_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version) {
  return std::make_unique<HostCall>(instruction, std::move(target), version);
}

void fail_with_current_exception(const Instruction& instruction, std::string_view target) {
  try {
    throw;
  } catch (const ForeignError&) {
    throw;
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    std::string_view said = error.what();
    fail(instruction, "'", target, "' failed", said.empty() ? "" : ": ", said);
  } catch (...) {
    fail(instruction, "'", target, "' failed with an exception of an unknown type");
  }
}

}  // namespace lamella::hlo
