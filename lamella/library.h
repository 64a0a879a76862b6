// Declaring operators and registering kernels, without the operators themselves: the lightest
// header for an extension that brings its own. Add lamella/api/ops/<name>.h for each operator it
// calls.
#pragma once
#include "lamella/dispatch/library.h"
