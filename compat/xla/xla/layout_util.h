// XLA's spelling of what makes layouts.
#pragma once
#include "xla/lamella_names.h"
