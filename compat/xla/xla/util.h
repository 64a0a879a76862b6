// XLA's spelling of passing errors on.
#pragma once
#include "xla/lamella_status.h"
