// Chooses the functions of blocks for the processor's capability.
#include "lamella/kernels/families/special/blocks.h"

#include "lamella/core/fork.h"
#include "lamella/kernels/families/families.h"

namespace lamella::special {

#if defined(__x86_64__)
namespace AVX2 {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
}  // namespace AVX2
namespace AVX512 {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
}  // namespace AVX512
#endif
namespace DEFAULT {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
}  // namespace DEFAULT

namespace {

Blocks chosen() {
  Blocks blocks = {};
#if defined(__x86_64__)
  const int capability = native::code_capability();
  if (capability == 2) {
    AVX512::set_functions(&blocks);
    AVX512::set_polynomials(&blocks);
    return blocks;
  }
  if (capability == 1) {
    AVX2::set_functions(&blocks);
    AVX2::set_polynomials(&blocks);
    return blocks;
  }
#endif
  DEFAULT::set_functions(&blocks);
  DEFAULT::set_polynomials(&blocks);
  return blocks;
}

Blocks made;
fork::Once once;

}  // namespace

const Blocks& blocks() {
  once([] { made = chosen(); });
  return made;
}

}  // namespace lamella::special
