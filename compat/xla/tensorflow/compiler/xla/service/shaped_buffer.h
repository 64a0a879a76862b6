// XLA's spelling of buffers.
#pragma once
#include "xla/lamella_names.h"
