// c10::MaybeOwned.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/core/maybe_owned.h"
