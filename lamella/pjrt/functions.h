// The functions of the table, as the files of this folder define them: they throw, and api.cpp
// turns exceptions into errors.
#pragma once
#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

#define LAMELLA_PJRT(Name, name) void name(Name##Args& args);
#include "lamella/pjrt/functions.def"

}  // namespace lamella::pjrt
