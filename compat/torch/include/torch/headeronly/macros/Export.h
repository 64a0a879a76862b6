// Marks of what a library exports.
#pragma once
#include <c10/macros/Export.h>
