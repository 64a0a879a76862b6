// liblamella_lapack.so: the linear algebra that JAX programs call on the CPU, implemented with
// OpenBLAS. Loading the library registers its built-in targets.
#include <new>
#include <string>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/custom_call/lapack/handlers.h"
#include "lamella/graph/custom_call/lapack/routines.h"
#include "lamella/graph/custom_call/registry.h"

namespace lamella::hlo::lapack {
namespace {

ffi::HandlerError* error(const ffi::Api& api, ffi::ErrorCode code, const char* message) {
  ffi::ErrorCreateArgs args{LAMELLA_FFI_SIZE(ffi::ErrorCreateArgs, errc), nullptr, message, code};
  return api.error_create(&args);
}

// Wraps a body as a typed handler: answers metadata queries, and returns exceptions as errors.
template <void (*Body)(const ffi::CallFrame&)>
ffi::HandlerError* handler(ffi::CallFrame* frame) {
  for (ffi::ExtensionBase* e = frame->extension_start; e != nullptr; e = e->next) {
    if (e->type != ffi::ExtensionType::Metadata) continue;
    ffi::Metadata& metadata = *reinterpret_cast<ffi::MetadataExtension*>(e)->metadata;
    metadata.api_version.major_version = ffi::api_major;
    metadata.api_version.minor_version = ffi::api_minor;
    metadata.traits = 0;
    return nullptr;
  }
  if (frame->stage != ffi::Stage::Execute) return nullptr;
  try {
    Body(*frame);
    return nullptr;
  } catch (const std::bad_alloc&) {
    return error(*frame->api, ffi::ErrorCode::ResourceExhausted,
                 "expected memory for the work space, got none");
  } catch (const std::exception& e) {
    return error(*frame->api, ffi::ErrorCode::InvalidArgument, e.what());
  }
}

struct RoutineEntry {
  const char* name;
  ffi::Handler* execute;
};
constexpr RoutineEntry kTargets[] = {
#define LAMELLA_TARGETS(name, real, complex)              \
  {"lapack_s" #real "_ffi", &handler<&name<float>>},      \
      {"lapack_d" #real "_ffi", &handler<&name<double>>}, \
      {"lapack_c" #complex "_ffi", &handler<&name<c64>>}, \
      {"lapack_z" #complex "_ffi", &handler<&name<c128>>},
    // clang-format off
    LAMELLA_TARGETS(potrf, potrf, potrf)
    LAMELLA_TARGETS(getrf, getrf, getrf)
    LAMELLA_TARGETS(geqrf, geqrf, geqrf)
    LAMELLA_TARGETS(geqp3, geqp3, geqp3)
    LAMELLA_TARGETS(orgqr, orgqr, ungqr)
    LAMELLA_TARGETS(ormqr, ormqr, unmqr)
    LAMELLA_TARGETS(gehrd, gehrd, gehrd)
    LAMELLA_TARGETS(sytrd, sytrd, hetrd)
    LAMELLA_TARGETS(gesdd, gesdd, gesdd)
    LAMELLA_TARGETS(gesvd, gesvd, gesvd)
    LAMELLA_TARGETS(syevd, syevd, heevd)
    LAMELLA_TARGETS(geev, geev, geev)
    LAMELLA_TARGETS(gees, gees, gees)
    LAMELLA_TARGETS(trsm, trsm, trsm)
    LAMELLA_TARGETS(gtsv, gtsv, gtsv)
// clang-format on
#undef LAMELLA_TARGETS
                            {"tridiagonal_solve_perturbed_ffi", &handler<&tridiagonal_perturbed>},
};

const bool registered = [] {
  for (const RoutineEntry& entry : kTargets) {
    Target target;
    target.name = entry.name;
    target.platform = "Host";
    target.kind = TargetKind::Typed;
    target.function = reinterpret_cast<void*>(entry.execute);
    target.built_in = true;
    register_target(std::move(target));
  }
  return true;
}();

}  // namespace
}  // namespace lamella::hlo::lapack
