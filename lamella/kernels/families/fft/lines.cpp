// Chooses the transform functions of the processor's capability.
#include "lamella/kernels/families/fft/lines.h"

#include "lamella/kernels/by_capability.h"

namespace lamella::fft {

#if defined(__x86_64__)
namespace AVX2 {
const Functions<float>& functions_of(float);
const Functions<double>& functions_of(double);
}  // namespace AVX2
namespace AVX512 {
const Functions<float>& functions_of(float);
const Functions<double>& functions_of(double);
}  // namespace AVX512
#endif
namespace DEFAULT {
const Functions<float>& functions_of(float);
const Functions<double>& functions_of(double);
}  // namespace DEFAULT

template <class T>
const Functions<T>& functions() {
  LAMELLA_RETURN_BY_CAPABILITY("fft", functions_of(T()));
}
template const Functions<float>& functions<float>();
template const Functions<double>& functions<double>();

template <class T>
void complex_line(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward, T scale) {
  functions<T>().complex_line(plan, in, out, scratch, forward, scale);
}
template void complex_line(const LinePlan<float>&, const float*, float*, float*, bool, float);
template void complex_line(const LinePlan<double>&, const double*, double*, double*, bool, double);

}  // namespace lamella::fft
