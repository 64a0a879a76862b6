// XLA's spelling of errors.
#pragma once
#include "xla/lamella_status.h"
