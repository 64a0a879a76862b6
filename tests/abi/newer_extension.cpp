// A library built for a later version of the C ABI than the running one.
#include "lamella/abi/abi.h"
#undef LAMELLA_ABI_MINOR
#define LAMELLA_ABI_MINOR 77
#include "lamella/dispatch/library.h"

LAMELLA_LIBRARY(abi_newer, m) { m.def("nothing() -> ()"); }
