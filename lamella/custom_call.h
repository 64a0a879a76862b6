/* Functions of yours as targets of custom calls. A light header in plain C (and C++, and CUDA): it
 * brings neither tensors nor HLO. Link with Lamella::graph.
 *
 *   void twice(void* out, const void** in) { ... }
 *   LAMELLA_REGISTER_CUSTOM_CALL_TARGET(twice, "Host");
 *
 * A custom call finds its target by name and platform when its module is compiled, and its
 * api_version says how the function is called:
 *
 *   API_VERSION_ORIGINAL (what a text without one means)
 *     Host  void(void* out, const void** in)
 *     CUDA  void(CUstream stream, void** buffers, const char* opaque, size_t opaque_len)
 *   API_VERSION_STATUS_RETURNING
 *     Host  void(void* out, const void** in, XlaCustomCallStatus* status)
 *     CUDA  void(CUstream stream, void** buffers, const char* opaque, size_t opaque_len,
 *                XlaCustomCallStatus* status)
 *   API_VERSION_STATUS_RETURNING_UNIFIED
 *     Host  void(void* out, const void** in, const char* opaque, size_t opaque_len,
 *                XlaCustomCallStatus* status)
 *     CUDA  as above
 *
 * On the Host, `in` has a pointer for each operand and `out` is the result; a tuple is an array of
 * pointers, a token NULL. For CUDA, `buffers` has a device pointer for each array of the operands
 * and then of the result, tuples taken apart in preorder. */
#ifndef LAMELLA_CUSTOM_CALL_H_
#define LAMELLA_CUSTOM_CALL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#endif

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a call went; success unless told otherwise. Lives during the call. */
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
LAMELLA_ABI_API void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus* status);
/* The message is copied. The computation ends, and none of the call's outputs is used. */
LAMELLA_ABI_API void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status, const char* message,
                                                   size_t message_len);

/* Registers `function` as the target `name` on `platform`: "Host" ("cpu") or "CUDA" ("gpu"). The
 * same function may be registered again; another one under the same name is an error. file and
 * line: where, for messages; file may be NULL. */
LAMELLA_ABI_API lamella_status lamella_register_custom_call_target(const char* name, void* function,
                                                                   const char* platform,
                                                                   const char* file, uint32_t line);
/* Takes one registration of `function` back, or with NULL whatever function is registered. Compiled
 * modules keep what they found. Fails if there is none. */
LAMELLA_ABI_API lamella_status lamella_remove_custom_call_target(const char* name, void* function,
                                                                 const char* platform);

/* The function, or NULL. */
LAMELLA_ABI_API void* lamella_find_custom_call_target(const char* name, const char* platform);
/* Calls visit(context, name, function) for each plain function of the platform. */
LAMELLA_ABI_API lamella_status lamella_visit_custom_call_targets(
    const char* platform, void (*visit)(void* context, const char* name, void* function),
    void* context);

/* Registers typed handlers (XLA_FFI_Handler*) for the stages of a call; all but `execute` may be
 * NULL. traits: XLA_FFI_Handler_Traits beside those that the handlers state. Handlers compiled
 * against XLA's headers can register themselves as well, with
 * XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), ...). */
LAMELLA_ABI_API lamella_status lamella_register_typed_handlers(const char* name, void* instantiate,
                                                               void* prepare, void* initialize,
                                                               void* execute, uint32_t traits,
                                                               const char* platform,
                                                               const char* file, uint32_t line);
/* Takes one registration back, or with `execute` NULL all of the name. Fails if there is none. */
LAMELLA_ABI_API lamella_status lamella_remove_typed_handlers(const char* name, void* execute,
                                                             const char* platform);

#ifdef __cplusplus
} /* extern "C" */

namespace lamella {

/* The table itself, as XLA's users know it. */
class CustomCallTargetRegistry {
 public:
  /* Hidden: one in each library, so that none of them keeps another loaded. */
  __attribute__((visibility("hidden"))) static CustomCallTargetRegistry* Global() {
    static CustomCallTargetRegistry registry;
    return &registry;
  }
  /* Throws std::invalid_argument if another function has the name. */
  void Register(const std::string& symbol, void* address, const std::string& platform) {
    if (lamella_register_custom_call_target(symbol.c_str(), address, platform.c_str(), nullptr,
                                            0) != LAMELLA_OK) {
      throw std::invalid_argument(lamella_error_text());
    }
  }
  /* NULL if there is none. */
  void* Lookup(const std::string& symbol, const std::string& platform) const {
    return lamella_find_custom_call_target(symbol.c_str(), platform.c_str());
  }
  /* Names and functions, by name. */
  std::vector<std::pair<std::string, void*>> registered_symbols(const std::string& platform) const {
    using All = std::vector<std::pair<std::string, void*>>;
    All all;
    lamella_status status = lamella_visit_custom_call_targets(
        platform.c_str(),
        [](void* context, const char* name, void* function) {
          static_cast<All*>(context)->emplace_back(name, function);
        },
        &all);
    if (status != LAMELLA_OK) throw std::runtime_error(lamella_error_text());
    return all;
  }

 private:
  CustomCallTargetRegistry() = default;
};

namespace detail {
/* A registration that lasts as long as the library it stands in. A failure is kept for whoever
 * loads the library, since a static initialiser must not throw. */
class CustomCallRegistration {
 public:
  CustomCallRegistration(const char* name, void* function, const char* platform, const char* file,
                         uint32_t line)
      : name_(name), function_(function), platform_(platform) {
    held_ = lamella_register_custom_call_target(name, function, platform, file, line) == LAMELLA_OK;
    if (!held_) lamella_defer_failure(lamella_error_text(), file, line);
  }
  ~CustomCallRegistration() {
    if (held_) lamella_remove_custom_call_target(name_, function_, platform_);
  }
  CustomCallRegistration(const CustomCallRegistration&) = delete;
  CustomCallRegistration& operator=(const CustomCallRegistration&) = delete;

 private:
  const char* name_;
  void* function_;
  const char* platform_;
  bool held_;
};
}  // namespace detail
}  // namespace lamella

#define LAMELLA_REGISTER_CUSTOM_CALL_TARGET(function, platform) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(#function, function, platform)
/* Under a name of its own: a string. */
#define LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(name, function, platform) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET_(name, function, platform, __COUNTER__)
#define LAMELLA_REGISTER_CUSTOM_CALL_TARGET_(name, function, platform, id) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET__(name, function, platform, id)
#define LAMELLA_REGISTER_CUSTOM_CALL_TARGET__(name, function, platform, id)                     \
  static const ::lamella::detail::CustomCallRegistration lamella_custom_call_registration_##id( \
      (name), reinterpret_cast<void*>(function), (platform), __FILE__, __LINE__)
#endif /* __cplusplus */

#endif /* LAMELLA_CUSTOM_CALL_H_ */
