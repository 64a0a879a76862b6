// Transforms of lines of doubles, compiled for each capability.
#include "lamella/kernels/families/fft/line_kernels.h"

namespace lamella::fft {
inline namespace CPU_CAPABILITY {

const Functions<double>& functions_of(double) { return kFunctions<double>; }

}  // namespace CPU_CAPABILITY
}  // namespace lamella::fft
