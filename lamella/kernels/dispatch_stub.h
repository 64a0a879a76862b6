// KernelTable: the kernels of one function, one per device and, on the CPU, per instruction set;
// chosen at run time.
//
// Note [CPU capabilities]
//   Each file in kernels/cpu/simd is compiled once per capability. The highest one that the
//   processor has is used; LAMELLA_CPU_CAPABILITY=default|avx2|avx512 lowers it. A table's choice
//   is made once, at its first call.
#pragma once
#include <cstdint>
#include <utility>

#include "lamella/core/device.h"
#include "lamella/core/error.h"

namespace lamella {

enum class CPUCapability : int8_t { DEFAULT = 0, AVX2 = 1, AVX512 = 2, NUM_OPTIONS };

// "DEFAULT", "AVX2", "AVX512".
LAMELLA_PRIVATE_API const char* toString(CPUCapability capability);

namespace native {

// The capability that kernels use: the processor's, lowered by the environment variable. Throws
// ValueError if the variable has an unknown value.
LAMELLA_PRIVATE_API CPUCapability get_cpu_capability();

// If no kernel was compiled for an instruction set, the next lower one is used.
struct AnyKernelTable {
  static constexpr int kCapabilities = static_cast<int>(CPUCapability::NUM_OPTIONS);
  // Kernels of other devices, found by device type.
  static constexpr int kDevices = kDeviceTypes;

  const char* name;
  void* chosen = nullptr;  // atomic: the CPU kernel, once it is known
  void* cpu[kCapabilities] = {};
  void* device[kDevices] = {};

  // The kernel for the device. Throws NotImplementedError, naming the table, if there is none.
  void* find(DeviceType type);
  void set(CPUCapability capability, void* kernel) { cpu[static_cast<int>(capability)] = kernel; }
  void set(DeviceType type, void* kernel);
  bool supports(DeviceType type) const;
};

template <class FnPtr>
class KernelTable;

// `name` is for messages.
template <class R, class... A>
class KernelTable<R (*)(A...)> {
 public:
  using FnPtr = R (*)(A...);
  constexpr explicit KernelTable(const char* name) : table_{name} {}

  template <class... Args>
  R operator()(DeviceType type, Args&&... arguments) {
    return get(type)(std::forward<Args>(arguments)...);
  }
  FnPtr get(DeviceType type) {
    void* kernel =
        type == DeviceType::CPU ? __atomic_load_n(&table_.chosen, __ATOMIC_ACQUIRE) : nullptr;
    if (LAMELLA_UNLIKELY(kernel == nullptr)) kernel = table_.find(type);
    return reinterpret_cast<FnPtr>(kernel);
  }
  bool supports(DeviceType type) const { return table_.supports(type); }

  // `where`: a CPUCapability or a DeviceType.
  template <class Where>
  void set(Where where, FnPtr kernel) {
    table_.set(where, reinterpret_cast<void*>(kernel));
  }

 private:
  AnyKernelTable table_;
};

struct RegisterKernel {
  template <class Table, class Where>
  RegisterKernel(Table& table, Where where, typename Table::FnPtr kernel) {
    table.set(where, kernel);
  }
};

// The name of a table as a template argument.
struct KernelName {
  char text[32] = {};
  template <size_t N>
  consteval KernelName(const char (&name)[N]) {  // NOLINT(google-explicit-constructor)
    static_assert(N <= sizeof(text), "the name of a kernel has at most 31 characters");
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};
// The table of this name for kernels of type Fn, for families of operators whose kernels have one
// type. It needs no declaration: both registration and calls refer to it by name.
template <class Fn, KernelName name>
inline constinit KernelTable<Fn> named_kernel{name.text};

}  // namespace native
using native::get_cpu_capability;

// In a header: the table `name` for kernels of type `fn`. Each library has tables of its own.
#define LAMELLA_KERNEL(fn, name) \
  inline constinit ::lamella::native::KernelTable<fn> name { #name }

// In a file compiled per capability, or in a plain one (which then serves every capability).
#ifdef CPU_CAPABILITY
#define LAMELLA_THIS_CAPABILITY ::lamella::CPUCapability::CPU_CAPABILITY
#else
#define LAMELLA_THIS_CAPABILITY ::lamella::CPUCapability::DEFAULT
#endif
#define LAMELLA_REGISTER_KERNEL(table, fn) \
  LAMELLA_REGISTER_DEVICE_KERNEL(table, LAMELLA_THIS_CAPABILITY, fn)

// For another device.
#define LAMELLA_REGISTER_DEVICE_KERNEL(table, device, fn)                                     \
  static const ::lamella::native::RegisterKernel LAMELLA_CONCAT(table##_register_, __LINE__)( \
      table, device, fn)

}  // namespace lamella
