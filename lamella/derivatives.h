// For libraries that declare derivatives in their own YAML: what the generated formulas call.
#pragma once
#include "lamella/api/derivative_calls.h"
