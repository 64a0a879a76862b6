// XLA's spelling of the library of clients.
#pragma once
#include "xla/lamella_names.h"
