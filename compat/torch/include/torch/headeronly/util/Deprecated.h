// Marks of what PyTorch deprecates.
#pragma once
#include <c10/util/Deprecated.h>
