// The registry of custom-call targets of the process: names and platforms to functions.
//
// Note [Targets]
//   A name means one thing per platform and kind: a plain function, which the instruction's
//   api_version says how to call, or a bundle of typed handlers. What Lamella brings itself
//   (`built_in`) stands behind what users register: their registration hides it, and taking that
//   back shows it again. Whoever found a target keeps it: it is not changed afterwards, and the
//   library that holds its code stays loaded as long (see Pin).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamella::hlo {

// Keeps the shared library that holds an address loaded.
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

// Maker: a function of another language that makes its own prepared calls, whatever api_version an
// instruction states.
enum class TargetKind : uint8_t { Function, Typed, Maker };

struct Target {
  std::string name;
  std::string platform;  // canonical: "Host", "CUDA"
  TargetKind kind = TargetKind::Function;
  // The function; of typed ones the handler of the stage execute.
  void* function = nullptr;
  // Handlers of the other stages, of typed ones; may be NULL.
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  // XLA_FFI_Handler_Traits, of typed ones.
  uint32_t traits = 0;
  std::string where;  // "file:line", or ""
  bool built_in = false;
  // A maker is called with the target itself, which has the rest in `context`.
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
// name itself.
std::string canonical_platform(std::string_view platform);

// Registers. The same functions again are counted; others under the name are an Error that says
// where the first ones come from. Every function here is safe to call from any thread.
void register_target(Target target);
// Registers, in place of whatever is there.
void replace_target(Target target);
// Takes one registration back: of this function, or with NULL all of the name. False if there is
// none.
bool remove_target(std::string_view name, std::string_view platform, TargetKind kind,
                   const void* function = nullptr);
// NULL if there is none.
TargetPointer find_target(std::string_view name, std::string_view platform, TargetKind kind);
// By platform, then name; built-in ones that are hidden are left out.
std::vector<TargetPointer> list_targets();

}  // namespace lamella::hlo
