// Resolves the targets of custom calls.
//
// Note [Which target a name means]
//   A name is looked up, for its platform, among the registered targets; then, if it contains "::",
//   among the registered operators; then among the built-in targets (linear algebra). This happens
//   when a module is compiled, and an unknown name is an error.
#include <set>

#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/custom_call/annotation.h"
#include "lamella/graph/custom_call/api_version.h"
#include "lamella/graph/custom_call/builtin.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/cuda_call.h"
#include "lamella/graph/custom_call/cuda_driver.h"
#include "lamella/graph/custom_call/ffi/ffi_call.h"
#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/host_call.h"
#include "lamella/graph/custom_call/near_names.h"
#include "lamella/graph/custom_call/operator_call.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/graph/hlo/attribute_use.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

TargetKind kind_of(ApiVersion version) {
  return version == ApiVersion::TypedFfi ? TargetKind::Typed : TargetKind::Function;
}
TargetKind other_kind(TargetKind kind) {
  return kind == TargetKind::Typed ? TargetKind::Function : TargetKind::Typed;
}

// Throws an error about the missing target, with similar names.
[[noreturn]] void fail_unknown(const Instruction& i, std::string_view name,
                               std::string_view platform, ApiVersion version) {
  TargetKind kind = kind_of(version);
  if (find_target(name, platform, other_kind(kind)) != nullptr) {
    fail(i, "expected api_version to ",
         kind == TargetKind::Typed ? "be other than API_VERSION_TYPED_FFI"
                                   : "be API_VERSION_TYPED_FFI",
         ", since '", name, "' is registered for ", platform, " as a ",
         kind == TargetKind::Typed ? "plain function" : "typed handler", ", got ",
         api_version_name(version));
  }
  load_near_built_in(name);
  std::set<std::string> elsewhere;
  std::vector<std::string> names;
  for (const TargetPointer& target : list_targets()) {
    if (target->name == name) elsewhere.insert(target->platform);
    if (target->platform == platform) names.push_back(target->name);
  }
  if (name.find("::") != std::string_view::npos) {
    for (const OperatorEntry* entry : Registry::get().entries()) {
      std::string full = entry->name;
      if (entry->overload[0] != '\0') full += str(".", entry->overload);
      names.push_back(std::move(full));
    }
  }
  std::string hint;
  for (const std::string& one : elsewhere) {
    hint += (hint.empty() ? "; it is registered for " : " and ") + one;
  }
  std::string refused = ffi::refusal_of(name, platform);
  if (!refused.empty()) hint += "; its handlers were refused: " + refused;
  std::string near = near_names(name, names);
  if (!near.empty()) hint += "; near names: " + near;
  fail(i, "expected a target that is registered for ", platform, ", got '", name, "'", hint);
}

}  // namespace

std::string_view api_version_name(ApiVersion version) {
  return kApiVersions[static_cast<size_t>(version)];
}

ApiVersion api_version_of(const Instruction& i) {
  const Attribute* stated = i.find(AttributeKey::ApiVersion);
  if (stated == nullptr) return ApiVersion::Original;
  for (size_t n = 1; n < std::size(kApiVersions); ++n) {
    if (stated->text() == kApiVersions[n]) return static_cast<ApiVersion>(n);
  }
  fail(i, "expected a known api_version, got '", stated->text(), "'");  // modules are verified
}

std::unique_ptr<PreparedCall> prepare_call(const Instruction& i, std::string_view platform_name) {
  std::string platform = canonical_platform(platform_name);
  std::string_view name = i.text(AttributeKey::CustomCallTarget);
  LAMELLA_HLO_REQUIRE(!name.empty(), i, "expected custom_call_target to be a name, got ''");
  ApiVersion version = api_version_of(i);
  TargetPointer target = find_target(name, platform, kind_of(version));
  if (target == nullptr || target->built_in) {
    if (TargetPointer maker = find_target(name, platform, TargetKind::Maker)) {
      return maker->make(i, maker);
    }
  }
  if (target == nullptr && name.find("::") != std::string_view::npos) {
    if (auto call = prepare_operator_call(i)) return call;
  }
  if (target == nullptr) {
    if (auto call = prepare_annotation(i)) return call;
    load_built_in(name);
    target = find_target(name, platform, kind_of(version));
  }
  if (target == nullptr && platform != "Host") {
    target = find_target(name, "Host", kind_of(version));
    if (target != nullptr && !target->built_in) target = nullptr;
  }
  if (target == nullptr) fail_unknown(i, name, platform, version);
  if (target->kind == TargetKind::Typed) return prepare_typed_call(i, std::move(target));
  if (target->platform == "CUDA") return prepare_cuda_call(i, std::move(target), version);
  return prepare_host_call(i, std::move(target), version);
}

bool has_target(const Instruction& i, std::string_view platform) {
  std::string_view name = i.text(AttributeKey::CustomCallTarget);
  std::string canonical = canonical_platform(platform);
  return find_target(name, canonical, TargetKind::Typed) != nullptr ||
         find_target(name, canonical, TargetKind::Function) != nullptr;
}

void check_platform(std::string_view name) {
  std::string platform = canonical_platform(name);
  LAMELLA_CHECK(platform == "Host" || platform == "CUDA",
                "hlo: expected the platform to be Host or CUDA, got '", name, "'");
  if (platform == "CUDA") CudaDevice::get();
}

}  // namespace lamella::hlo
