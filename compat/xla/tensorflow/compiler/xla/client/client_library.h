// XLA's names for the client library.
#pragma once
#include "xla/lamella_names.h"
