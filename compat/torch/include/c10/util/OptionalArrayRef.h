// c10::OptionalArrayRef.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/array_ref.h"
