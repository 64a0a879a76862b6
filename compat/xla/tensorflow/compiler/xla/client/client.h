// XLA's spelling of clients.
#pragma once
#include "xla/lamella_names.h"
