// The choice of the CPU's instruction set, and of a kernel in a table.
#include "lamella/kernels/dispatch_stub.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "lamella/kernels/device_loops.h"

namespace lamella {

const char* toString(CPUCapability capability) {
  constexpr const char* names[] = {"DEFAULT", "AVX2", "AVX512"};
  auto index = static_cast<uint8_t>(capability);
  return index < 3 ? names[index] : "UNKNOWN";
}

namespace native {
namespace {

CPUCapability processor_capability() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  if (v4) return CPUCapability::AVX512;
  if (v3) return CPUCapability::AVX2;
#endif
  return CPUCapability::DEFAULT;
}

CPUCapability compute_capability() {
  CPUCapability have = processor_capability();
  const char* text = std::getenv("LAMELLA_CPU_CAPABILITY");
  if (text == nullptr || *text == '\0') return have;
  std::string asked(text);
  for (char& c : asked) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  CPUCapability want = CPUCapability::DEFAULT;
  if (asked == "avx512") {
    want = CPUCapability::AVX512;
  } else if (asked == "avx2") {
    want = CPUCapability::AVX2;
  } else {
    LAMELLA_CHECK_VALUE(asked == "default",
                        "LAMELLA_CPU_CAPABILITY: expected default, avx2 or avx512, got ", text);
  }
  // A higher value than the processor has is lowered, so that every value works on any machine.
  return want < have ? want : have;
}

}  // namespace

CPUCapability get_cpu_capability() {
  // Not a guarded static, as in default_num_threads(): concurrent threads find the same capability.
  static std::atomic<int> decided{-1};
  int capability = decided.load(std::memory_order_relaxed);
  if (capability < 0) {
    capability = static_cast<int>(compute_capability());
    decided.store(capability, std::memory_order_relaxed);
  }
  return static_cast<CPUCapability>(capability);
}

void* AnyKernelTable::find(DeviceType type) {
  if (type == DeviceType::CPU) {
    for (int c = static_cast<int>(get_cpu_capability()); c >= 0; --c) {
      if (cpu[c] != nullptr) {
        __atomic_store_n(&chosen, cpu[c], __ATOMIC_RELEASE);
        return cpu[c];
      }
    }
  } else if (void* kernel = static_cast<unsigned>(type) < kDevices
                                ? device[static_cast<unsigned>(type)]
                                : nullptr) {
    return kernel;
  } else if (void* loop = device_loop(name, type)) {
    set(type, loop);
    return loop;
  }
  if (type == DeviceType::CPU && supports(type)) {
    throw NotImplementedError(str(name, ": expected a kernel for capability ",
                                  toString(get_cpu_capability()),
                                  " or a lower one, got only kernels for higher ones: Lamella was "
                                  "built for this machine alone (LAMELLA_CAPABILITIES=native)"));
  }
  throw NotImplementedError(str(name, ": expected a kernel for device ", Device(type).str(),
                                ", got none; register one with LAMELLA_REGISTER_KERNEL"));
}

void AnyKernelTable::set(DeviceType type, void* kernel) {
  LAMELLA_INTERNAL_ASSERT(static_cast<unsigned>(type) < kDevices);
  if (type == DeviceType::CPU) {
    set(CPUCapability::DEFAULT, kernel);
  } else {
    device[static_cast<unsigned>(type)] = kernel;
  }
}

bool AnyKernelTable::supports(DeviceType type) const {
  if (type == DeviceType::CPU) {
    for (void* kernel : cpu) {
      if (kernel != nullptr) return true;
    }
    return false;
  }
  return static_cast<unsigned>(type) < kDevices && device[static_cast<unsigned>(type)] != nullptr;
}

}  // namespace native
}  // namespace lamella
