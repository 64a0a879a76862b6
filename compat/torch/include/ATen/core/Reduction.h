// at::Reduction.
#pragma once
#include <c10/lamella_names.h>

namespace at::Reduction {
enum Reduction { None, Mean, Sum, END };
}
