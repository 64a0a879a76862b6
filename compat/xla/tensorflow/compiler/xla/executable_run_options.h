// XLA's spelling of options of running.
#pragma once
#include "xla/lamella_names.h"
