// Macros that mark exported symbols.
#pragma once
#include <c10/macros/Export.h>
