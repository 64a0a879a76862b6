// c10::DispatchKey.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/dispatch/dispatch_key.h"
