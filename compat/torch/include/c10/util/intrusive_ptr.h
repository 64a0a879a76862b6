// c10::intrusive_ptr, c10::intrusive_ptr_target, c10::make_intrusive.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/intrusive_ptr.h"
