// Host callbacks: the custom calls by which JAX's programs call functions of Python.
//
// Note [Host callbacks]
//   JAX's pure_callback, io_callback and debug.callback are typed custom calls with one attribute,
//   `index`: the number of a function among those that JAX adds to the user data of each run. Their
//   handler in jaxlib is bound to XLA, so these targets call one function of C that the Python
//   package sets. That function takes Python's lock itself: nothing here knows Python.
//   buffer_callback is the same, but its functions write the results into memory that they are
//   given. A worker that waits for a callback lets another one run in its place, because the
//   callback may call programs and wait for them.
#include "lamella/pjrt/callback.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/ffi/attributes.h"
#include "lamella/graph/custom_call/ffi/types.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/pjrt/ffi.h"
#include "lamella/pjrt/workers.h"

namespace lamella::pjrt {

// An operand or result as the function sees it: the numbers of types are XLA's.
struct HostArray {
  int32_t type;
  int32_t rank;
  const int64_t* dims;
  void* data;
};

namespace {

constexpr std::string_view kWriting = "xla_buffer_python_cpu_callback";
constexpr std::string_view kTargets[] = {"xla_ffi_python_cpu_callback",
                                         "xla_ffi_partitioned_python_cpu_callback", kWriting};

// Returns 0, or 1 after lamella_pjrt_callback_error(). `writes` says that functions write results.
using HostFunction = int (*)(void* callbacks, uint64_t index, int writes, size_t argument_count,
                             const HostArray* arguments, size_t result_count,
                             const HostArray* results, void* error);
std::atomic<HostFunction> host_function = nullptr;

HostArray array_of(const hlo::Shape& shape, void* data) {
  return {static_cast<int32_t>(shape.element_type()), static_cast<int32_t>(shape.rank()),
          shape.dimensions().data(), data};
}

class HostCallback final : public hlo::PreparedCall {
 public:
  explicit HostCallback(const hlo::Instruction& instruction)
      : name_(instruction.name),
        buffers_(instruction),
        index_(index_of(instruction)),
        writes_(instruction.text(hlo::AttributeKey::CustomCallTarget) == kWriting) {}

  hlo::Value run(std::span<hlo::Value> operands, hlo::RunContext& context) override {
    HostFunction function = host_function;
    void* callbacks =
        context.user_data == nullptr ? nullptr : context.user_data->find(kCallbacksType);
    LAMELLA_CHECK(function != nullptr && callbacks != nullptr, "hlo: expected the callback ",
                  index_, " of '", name_,
                  "' among the user data of the run, which jaxlib 0.10 adds");
    std::vector<hlo::Value> kept(operands.begin(), operands.end());
    hlo::BoundBuffers bound(buffers_, operands);
    std::vector<HostArray> arguments, results;
    for (size_t i = 0; i < buffers_.operands().size(); ++i) {
      arguments.push_back(array_of(*buffers_.operands()[i].shape, bound.operands()[i]));
    }
    for (size_t i = 0; i < buffers_.results().size(); ++i) {
      results.push_back(array_of(*buffers_.results()[i].shape, bound.results()[i]));
    }
    std::string error;
    {
      Waiting others_run;
      if (function(callbacks, index_, writes_, arguments.size(), arguments.data(), results.size(),
                   results.data(), &error) != 0) {
        throw lamella::Error(error);
      }
    }
    return bound.finish();
  }

 private:
  static uint64_t index_of(const hlo::Instruction& instruction) {
    hlo::ffi::AttributeDictionary attributes(hlo::opaque_of(instruction));
    const hlo::ffi::Attrs& all = attributes.attrs();
    for (int64_t a = 0; a < all.size; ++a) {
      if (std::string_view(all.names[a]->ptr, all.names[a]->len) != "index" ||
          all.types[a] != hlo::ffi::AttrType::Scalar) {
        continue;
      }
      const auto& scalar = *static_cast<const hlo::ffi::Scalar*>(all.attrs[a]);
      auto type = static_cast<hlo::ElementType>(scalar.dtype);
      if (type == hlo::ElementType::U64 || type == hlo::ElementType::S64) {
        return *static_cast<const uint64_t*>(scalar.value);
      }
    }
    throw lamella::Error(str("hlo: expected '", instruction.name, "' to have an attribute index"));
  }

  std::string_view name_;
  hlo::CallBuffers buffers_;
  uint64_t index_;
  bool writes_;
};

}  // namespace

bool is_host_callback(const hlo::Instruction& instruction) {
  std::string_view target = instruction.text(hlo::AttributeKey::CustomCallTarget);
  return std::ranges::find(kTargets, target) != std::end(kTargets);
}

void register_host_callbacks() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (std::string_view name : kTargets) {
      hlo::Target target;
      target.name = name;
      target.platform = "Host";
      target.kind = hlo::TargetKind::Maker;
      target.make = [](const hlo::Instruction& instruction, hlo::TargetPointer) {
        return std::unique_ptr<hlo::PreparedCall>(new HostCallback(instruction));
      };
      target.function = reinterpret_cast<void*>(target.make);
      hlo::register_target(std::move(target));
    }
  });
}

}  // namespace lamella::pjrt

extern "C" {

// Sets the function that calls functions of Python.
LAMELLA_PUBLIC void lamella_pjrt_set_callback(lamella::pjrt::HostFunction function) {
  lamella::pjrt::host_function = function;
  lamella::pjrt::register_host_callbacks();
}
// Says why the function failed; `error` is its last argument.
LAMELLA_PUBLIC void lamella_pjrt_callback_error(void* error, const char* text) {
  *static_cast<std::string*>(error) = text;
}
}
