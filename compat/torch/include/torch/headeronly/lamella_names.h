// The namespace torch::headeronly: Lamella's names, found through it.
#pragma once
#include <c10/lamella_names.h>

namespace torch::headeronly {
using namespace lamella;
}
