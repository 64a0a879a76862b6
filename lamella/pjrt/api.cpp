// GetPjrtApi: the table of functions, and the way from C into them and of exceptions out of them.
#include "lamella/pjrt/extensions.h"
#include "lamella/pjrt/functions.h"

namespace lamella::pjrt {
namespace {

template <class Args, void (*function)(Args&)>
void called_first(Args* args) noexcept {
  function(*args);
}

Extension* extensions() {
  static LayoutsExtension layouts = layouts_extension();
  static FfiExtension ffi = ffi_extension();
  static MemoryDescriptionsExtension memories = memory_descriptions_extension();
  layouts.base.next = &ffi.base;
  ffi.base.next = &memories.base;
  return &layouts.base;
}

Api table() {
  Api api{};
  api.head = {sizeof(Api), extensions()};
  api.version = {{sizeof(ApiVersion), nullptr}, api_major, api_minor};
#define LAMELLA_PJRT_FIRST(Name, name) api.name = called_first<Name##Args, name>;
#define LAMELLA_PJRT(Name, name) api.name = called<Name##Args, name>;
#include "lamella/pjrt/functions.def"
  return api;
}

}  // namespace

void fail_size(size_t least, size_t got) {
  fail(Code::InvalidArgument, "lamella: expected arguments of at least ", least, " bytes, got ",
       got, "; this jaxlib is too old for lamella: install jaxlib 0.10 or later");
}

void plugin_initialize(PluginInitializeArgs& /*args*/) {}
void plugin_attributes(PluginAttributesArgs& args) {
  // The versions of StableHLO whose artifacts can be read, and that of XLA's interface.
  static const int64_t newest[] = {1, 17, 0}, oldest[] = {0, 9, 0};
  static const NamedValue values[] = {
      {{sizeof(NamedValue), nullptr},
       {"stablehlo_current_version", 25},
       ValueKind::Int64List,
       {.integers = newest},
       3},
      {{sizeof(NamedValue), nullptr},
       {"stablehlo_minimum_version", 25},
       ValueKind::Int64List,
       {.integers = oldest},
       3},
      {{sizeof(NamedValue), nullptr}, {"xla_version", 11}, ValueKind::Int64, {.integer = 2}, 1},
  };
  args.attributes = {values, 3};
}

}  // namespace lamella::pjrt

extern "C" LAMELLA_PUBLIC const lamella::pjrt::Api* GetPjrtApi() {
  static const lamella::pjrt::Api api = lamella::pjrt::table();
  return &api;
}
