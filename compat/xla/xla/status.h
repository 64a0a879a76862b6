// XLA's names for errors.
#pragma once
#include "xla/lamella_status.h"
