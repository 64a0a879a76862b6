// c10::MemoryFormat.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/memory_format.h"
