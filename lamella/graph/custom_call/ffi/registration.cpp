// Registers typed handlers as targets.
#include "lamella/graph/custom_call/ffi/registration.h"

#include <map>
#include <mutex>
#include <utility>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/ffi/runtime.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo::ffi {

Metadata metadata_of(Handler* handler, std::string_view what) {
  Metadata metadata{};
  metadata.struct_size = metadata_size;
  MetadataExtension extension{};
  extension.extension_base.struct_size = sizeof(MetadataExtension);
  extension.extension_base.type = ExtensionType::Metadata;
  extension.metadata = &metadata;
  ExecutionContext context;
  CallFrame frame{};
  frame.struct_size = call_frame_size;
  frame.extension_start = &extension.extension_base;
  frame.api = api();
  frame.ctx = &context;
  frame.stage = Stage::Execute;
  frame.args.struct_size = LAMELLA_FFI_SIZE(Args, args);
  frame.rets.struct_size = LAMELLA_FFI_SIZE(Rets, rets);
  frame.attrs.struct_size = LAMELLA_FFI_SIZE(Attrs, attrs);
  std::string said;
  try {
    HandlerError* error = handler(&frame);
    if (error == nullptr) return metadata;
    said = take_message(error);
  } catch (const std::exception& e) {
    said = e.what();
  }
  throw Error(str(what, " to report the version it was compiled against, got: ", said));
}

void register_handlers(std::string_view name, std::string_view platform,
                       const HandlerBundle& bundle, Registration how) {
  std::string what = str("hlo: expected the handler '", name, "'");
  LAMELLA_CHECK(bundle.execute != nullptr, what, " to have a function for execute, got none");
  for (Handler* handler : {bundle.execute, bundle.instantiate, bundle.prepare, bundle.initialize}) {
    if (handler == nullptr) continue;
    Metadata metadata = metadata_of(handler, what);
    const ApiVersion& version = metadata.api_version;
    LAMELLA_CHECK(version.major_version == api_major && version.minor_version >= oldest_api_minor &&
                      version.minor_version <= api_minor,
                  what, " to be compiled against version ", api_major, ".", oldest_api_minor,
                  " to ", api_major, ".", api_minor, " of the interface, got ",
                  version.major_version, ".", version.minor_version);
    if (handler == bundle.execute) how.traits |= metadata.traits;
  }
  Target target;
  target.name = name;
  target.platform = platform;
  target.kind = TargetKind::Typed;
  target.function = reinterpret_cast<void*>(bundle.execute);
  target.instantiate = reinterpret_cast<void*>(bundle.instantiate);
  target.prepare = reinterpret_cast<void*>(bundle.prepare);
  target.initialize = reinterpret_cast<void*>(bundle.initialize);
  target.traits = how.traits;
  target.where = std::move(how.where);
  target.built_in = how.built_in;
  if (how.replace) {
    replace_target(std::move(target));
  } else {
    register_target(std::move(target));
  }
}

namespace {

struct Refusals {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::string> texts;  // by name and platform
};
// Never destroyed, for the same reason as the registry.
Refusals& refusals() {
  static Refusals& one = *new Refusals;
  return one;
}

}  // namespace

HandlerError* register_from_table(const HandlerRegisterArgs& args) {
  std::string name(text_of(args.name)), platform = canonical_platform(text_of(args.platform));
  try {
    Registration how;
    how.traits = args.traits;
    register_handlers(name, platform, args.bundle, std::move(how));
    return nullptr;
  } catch (const std::exception& e) {
    Refusals& r = refusals();
    std::lock_guard<std::mutex> lock(r.mutex);
    r.texts[{name, platform}] = e.what();
    return new HandlerError{ErrorCode::InvalidArgument, e.what()};
  }
}

std::string refusal_of(std::string_view name, std::string_view platform) {
  Refusals& r = refusals();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto found = r.texts.find({std::string(name), canonical_platform(platform)});
  return found != r.texts.end() ? found->second : "";
}

}  // namespace lamella::hlo::ffi
