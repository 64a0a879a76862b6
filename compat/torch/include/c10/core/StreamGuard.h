// c10::StreamGuard.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/stream.h"
