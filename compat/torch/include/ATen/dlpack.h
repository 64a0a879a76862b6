// The structures of DLPack: DLTensor, DLManagedTensor, ….
#pragma once
#include "lamella/core/dlpack_structs.h"
