// The extension of custom calls: registering types and handlers, and user data of runs.
#include "lamella/pjrt/ffi.h"

#include <map>
#include <mutex>

#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/ffi/types.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/pjrt/extensions.h"

namespace lamella::pjrt {
namespace {

// The number of a type. A caller without a number gets that of the name, if it has one.
int64_t type_number(const std::string& name, int64_t id, hlo::ffi::Deleter deleter) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::string, int64_t>;
  std::lock_guard<std::mutex> lock(mutex);
  auto [found, is_new] = known.try_emplace(name, id);
  if (is_new) {
    try {
      hlo::ffi::register_type(name, &found->second, deleter);
    } catch (...) {
      known.erase(found);
      throw;
    }
  }
  require(id == 0 || id == found->second, "lamella: expected the type '", name,
          "' to have the number ", found->second, ", got ", id);
  return found->second;
}

void register_type(FfiTypeRegisterArgs& args) {
  hlo::ffi::Deleter deleter =
      has(&args, &args.info) && args.info != nullptr ? args.info->deleter : nullptr;
  args.id = type_number(text_of(args.name), args.id, deleter);
}
void user_data_add(FfiUserDataAddArgs& args) {
  require(args.context != nullptr, "PJRT_FFI_UserData_Add: expected a context, got null");
  add_user_data(*args.context, args.type, args.data);
  // jaxlib adds its callbacks by a number of its own, of which it registers no type.
  hlo::ffi::Deleter deleter = nullptr;
  if (!hlo::ffi::find_type(args.type, &deleter)) {
    add_user_data(*args.context, kCallbacksType, args.data);
  }
}
void register_handler(FfiRegisterHandlerArgs& args) {
  hlo::ffi::HandlerBundle bundle{};
  bundle.execute = reinterpret_cast<hlo::ffi::Handler*>(args.handler);
  hlo::ffi::Registration how;
  how.traits = args.traits;
  hlo::ffi::register_handlers(text_of(args.target), text_of(args.platform), bundle, std::move(how));
}

}  // namespace

FfiExtension ffi_extension() {
  return {{sizeof(FfiExtension), ExtensionType::Ffi, nullptr},
          called<FfiTypeRegisterArgs, register_type>,
          called<FfiUserDataAddArgs, user_data_add>,
          called<FfiRegisterHandlerArgs, register_handler>};
}

}  // namespace lamella::pjrt

namespace {

// The text of the last error of a thread, for the Python package.
template <class F>
const char* guarded(F&& f) {
  thread_local std::string text;
  try {
    f();
    return nullptr;
  } catch (...) {
    text = lamella::pjrt::current_status().text;
    return text.c_str();
  }
}

}  // namespace

// Both return null, or why they failed.
extern "C" {

// Registers handlers (`api_version` 1: execute, instantiate, prepare, initialize) or a function
// (0: the first one). With `keep_built_in` a target that Lamella has by itself stays.
LAMELLA_PUBLIC const char* lamella_pjrt_register_target(const char* name, const char* platform,
                                                        int api_version, uint32_t traits,
                                                        void* const* functions, int keep_built_in) {
  using namespace lamella::hlo;
  return guarded([&] {
    TargetKind kind = api_version == 1 ? TargetKind::Typed : TargetKind::Function;
    TargetPointer there = find_target(name, canonical_platform(platform), kind);
    if (keep_built_in != 0 && there != nullptr && there->built_in) return;
    if (kind == TargetKind::Typed) {
      auto handler = [&](int i) { return reinterpret_cast<ffi::Handler*>(functions[i]); };
      ffi::Registration how;
      how.traits = traits;
      ffi::HandlerBundle bundle{handler(1), handler(2), handler(3), handler(0)};
      return ffi::register_handlers(name, platform, bundle, std::move(how));
    }
    Target target;
    target.name = name;
    target.platform = canonical_platform(platform);
    target.function = functions[0];
    register_target(std::move(target));
  });
}
// Registers a type. `id` is read, and receives the number if it is 0.
LAMELLA_PUBLIC const char* lamella_pjrt_register_type(const char* name, int64_t* id,
                                                      void (*deleter)(void*)) {
  return guarded([&] { *id = lamella::pjrt::type_number(name, *id, deleter); });
}
}
