// The namespace torch::headeronly, through which Lamella's names are found.
#pragma once
#include <c10/lamella_names.h>

namespace torch::headeronly {
using namespace lamella;
}
