// c10::Dict.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/dict.h"
