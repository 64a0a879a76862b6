// The process-wide registry of custom-call targets: maps names and platforms to functions.
//
// Note [Targets]
//   A name has one meaning per platform and kind: a plain function, called by the convention of the
//   instruction's api_version, or a bundle of typed handlers. A user's registration hides a
//   built-in target (`built_in`) until it is removed. A target that was found stays valid: it is
//   never changed, and callers keep the library with its code loaded (see Pin).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::hlo {

// Keeps the shared library that contains an address loaded.
class Pin {
 public:
  Pin() = default;
  explicit Pin(const void* address);
  Pin(Pin&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Pin();

 private:
  void* handle_ = nullptr;
};

class Instruction;
class PreparedCall;

// Maker: a target from another language that makes its own prepared calls, for any api_version.
enum class TargetKind : uint8_t { Function, Typed, Maker };

struct Target {
  std::string name;
  std::string platform;  // canonical: "Host", "CUDA"
  TargetKind kind = TargetKind::Function;
  // The function; for typed targets, the handler of the stage execute.
  void* function = nullptr;
  // The handlers of the other stages of typed targets; may be NULL.
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  // The XLA_FFI_Handler_Traits of typed targets.
  uint32_t traits = 0;
  std::string where;  // "file:line", or ""
  bool built_in = false;
  // A maker's function. It is called with the target itself, whose `context` has the maker's data.
  std::unique_ptr<PreparedCall> (*make)(const Instruction& instruction,
                                        std::shared_ptr<const Target> target) = nullptr;
  std::shared_ptr<void> context;

  bool same_functions(const Target& other) const {
    return function == other.function && context == other.context &&
           instantiate == other.instantiate && prepare == other.prepare &&
           initialize == other.initialize;
  }
};
using TargetPointer = std::shared_ptr<const Target>;

// "Host" for "Host", "cpu" and "CPU"; "CUDA" for "cuda" and "gpu"; "ROCM" for "rocm"; any other
// name is returned unchanged.
std::string canonical_platform(std::string_view platform);

// Registers a target. Registering the same functions again increments a count; other functions
// under the name are an Error that says where the first were registered. All functions here are
// thread-safe.
void register_target(Target target);
// Registers a target and replaces an existing one.
void replace_target(Target target);
// Removes one registration of this function, or all of the name if `function` is NULL. False if
// there is none.
bool remove_target(std::string_view name, std::string_view platform, TargetKind kind,
                   const void* function = nullptr);
// NULL if there is none.
TargetPointer find_target(std::string_view name, std::string_view platform, TargetKind kind);
// All targets, sorted by platform, then name; hidden built-in targets are omitted.
std::vector<TargetPointer> list_targets();

}  // namespace lamella::hlo
