// XLA's spelling of padding.
#pragma once
#include "xla/lamella_names.h"
