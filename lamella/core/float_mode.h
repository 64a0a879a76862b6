// The processor's mode for subnormal numbers, of the calling thread.
#pragma once
#include <cstdint>

namespace lamella {

// The bits of the processor's control register that make it take subnormal operands as zeros and
// return zeros in place of subnormal results; 0 where it computes with them.
#if defined(__x86_64__)
inline constexpr uint64_t kFlushSubnormals = 0x8040;  // FTZ and DAZ of MXCSR
inline uint64_t float_control() { return __builtin_ia32_stmxcsr(); }
inline void set_float_control(uint64_t control) {
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(control));
}
#elif defined(__aarch64__)
inline constexpr uint64_t kFlushSubnormals = uint64_t{1} << 24;  // FZ of FPCR
inline uint64_t float_control() {
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
inline void set_float_control(uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
#else
inline constexpr uint64_t kFlushSubnormals = 0;
inline uint64_t float_control() { return 0; }
inline void set_float_control(uint64_t) {}
#endif
inline uint64_t subnormal_mode() { return float_control() & kFlushSubnormals; }

// Sets the mode until the end of a scope.
class SubnormalMode {
 public:
  explicit SubnormalMode(uint64_t mode) : before_(subnormal_mode()), mode_(mode) {
    if (mode_ != before_) set(mode_);
  }
  SubnormalMode(const SubnormalMode&) = delete;
  SubnormalMode& operator=(const SubnormalMode&) = delete;
  ~SubnormalMode() {
    if (mode_ != before_) set(before_);
  }

 private:
  // The other bits of the register, flags of exceptions among them, stay as they are.
  static void set(uint64_t mode) {
    set_float_control((float_control() & ~kFlushSubnormals) | mode);
  }
  uint64_t before_, mode_;
};

}  // namespace lamella
