// Chooses the functions of blocks for the processor's capability.
#include "lamella/kernels/families/special/blocks.h"

#include "lamella/core/fork.h"
#include "lamella/kernels/by_capability.h"
#include "lamella/kernels/families/families.h"

namespace lamella::special {

#if defined(__x86_64__)
namespace AVX2 {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
void set_splits(Blocks* blocks);
}  // namespace AVX2
namespace AVX512 {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
void set_splits(Blocks* blocks);
}  // namespace AVX512
#endif
namespace DEFAULT {
void set_functions(Blocks* blocks);
void set_polynomials(Blocks* blocks);
void set_splits(Blocks* blocks);
}  // namespace DEFAULT

namespace {

void set_functions(Blocks* blocks) {
  LAMELLA_RETURN_BY_CAPABILITY("special", set_functions(blocks));
}
void set_polynomials(Blocks* blocks) {
  LAMELLA_RETURN_BY_CAPABILITY("special", set_polynomials(blocks));
}
void set_splits(Blocks* blocks) { LAMELLA_RETURN_BY_CAPABILITY("special", set_splits(blocks)); }

Blocks made;
fork::Once once;

}  // namespace

const Blocks& blocks() {
  once([] {
    set_functions(&made);
    set_polynomials(&made);
    set_splits(&made);
  });
  return made;
}

}  // namespace lamella::special
