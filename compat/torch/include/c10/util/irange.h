// c10::irange(n) and c10::irange(first, last): integers to iterate over.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/irange.h"
