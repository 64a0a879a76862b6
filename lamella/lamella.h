// Everything a user of Lamella may include: tensors, all operators, the dispatcher, registration.
#pragma once
#include "lamella/api/functions.h"
#include "lamella/api/tensor.h"
#include "lamella/library.h"
