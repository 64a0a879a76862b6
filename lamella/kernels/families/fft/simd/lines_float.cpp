// Transforms of lines of floats, compiled for each capability.
#include "lamella/kernels/families/fft/line_kernels.h"

namespace lamella::fft {
inline namespace CPU_CAPABILITY {

const Functions<float>& functions_of(float) { return kFunctions<float>; }

}  // namespace CPU_CAPABILITY
}  // namespace lamella::fft
