// Fourier transforms by cuFFT. Plans are kept by their sizes; their work space comes from the
// allocator at each call.
#include <list>
#include <memory>

#include "lamella/cuda/allocator.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/launch.h"
#include "lamella/cuda/libraries.h"
#include "lamella/cuda/library_values.h"
#include "lamella/cuda/math.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

using native::DeviceFourier;

struct Plan {
  int device, type, rank;
  int64_t n[3], batch;
  int handle = 0;
  size_t bytes = 0;
  bool is_for(const Plan& other) const {
    return device == other.device && type == other.type && rank == other.rank &&
           n[0] == other.n[0] && n[1] == other.n[1] && n[2] == other.n[2] && batch == other.batch;
  }
};
// The plans used last come first.
constexpr size_t kMostPlans = 1024;
struct Plans {
  std::mutex mutex;
  std::list<Plan> all;
};
Plans& plans = *new Plans();

// The plan of a problem, with its key in `wanted`; NULL: the library has none.
Plan* plan_of(const Cufft& lib, Plan wanted) {
  std::list<Plan>& all = plans.all;
  for (auto at = all.begin(); at != all.end(); ++at) {
    if (!at->is_for(wanted)) continue;
    all.splice(all.begin(), all, at);
    return &all.front();
  }
  if (lib.cufftCreate(&wanted.handle) != 0) return nullptr;
  long long n[3];
  for (int i = 0; i < wanted.rank; ++i) n[i] = wanted.n[i];
  const bool made = lib.cufftSetAutoAllocation(wanted.handle, 0) == 0 &&
                    lib.cufftMakePlanMany64(wanted.handle, wanted.rank, n, nullptr, 1, 0, nullptr,
                                            1, 0, wanted.type, wanted.batch, &wanted.bytes) == 0;
  if (!made) {
    lib.cufftDestroy(wanted.handle);
    return nullptr;
  }
  if (all.size() == kMostPlans) {
    lib.cufftDestroy(all.back().handle);
    all.pop_back();
  }
  all.push_front(wanted);
  return &all.front();
}

}  // namespace

bool transform(const char*, const DeviceFourier& call) {
  const Cufft* lib = cufft();
  if (lib == nullptr || call.rank < 1 || call.rank > 3) return false;
  const int device = call.device.index();
  const int type = (call.from_real ? fft::kRealToComplex
                    : call.to_real ? fft::kComplexToReal
                                   : fft::kComplex) |
                   (call.is_double ? fft::kDouble : 0);
  ContextGuard guard(device);
  const StreamHandle stream = handle_of(device, current().streams[device]);
  std::lock_guard lock(plans.mutex);
  Plan wanted{device, type, call.rank, {}, call.batch};
  for (int i = 0; i < call.rank; ++i) wanted.n[i] = call.n[i];
  RelaxedCapture relaxed;
  Plan* plan = plan_of(*lib, wanted);
  if (plan == nullptr) return false;
  const Workspace work(device, plan->bytes);
  check_library(lib->cufftSetStream(plan->handle, stream), "cufftSetStream");
  if (plan->bytes != 0) {
    check_library(lib->cufftSetWorkArea(plan->handle, work.data()), "cufftSetWorkArea");
  }
  Driver::note_launch(device, "cufftXtExec");
  check_library(lib->cufftXtExec(plan->handle, call.from, call.to,
                                 call.forward ? fft::kForward : fft::kInverse),
                "cufftXtExec");
  after_launch(device, stream);
  return true;
}

}  // namespace lamella::cuda
