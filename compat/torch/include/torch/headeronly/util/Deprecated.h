// Macros that mark deprecated names.
#pragma once
#include <c10/util/Deprecated.h>
