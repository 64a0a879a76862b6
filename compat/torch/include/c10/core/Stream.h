// c10::Stream.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/stream.h"
