// c10::SymIntArrayRef.
#pragma once
#include <c10/core/SymInt.h>
