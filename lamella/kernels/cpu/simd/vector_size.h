// The width of the registers of the CPU capability that a file is compiled for.
#pragma once

#ifndef CPU_CAPABILITY
#define CPU_CAPABILITY DEFAULT
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {

#if defined(CPU_CAPABILITY_AVX512)
inline constexpr int kVecBytes = 64;
#elif defined(CPU_CAPABILITY_AVX2)
inline constexpr int kVecBytes = 32;
#else
inline constexpr int kVecBytes = 16;
#endif

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
