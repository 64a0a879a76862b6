// The default dtype.
#pragma once
#include <c10/core/ScalarType.h>
