// c10::Half.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/half.h"
