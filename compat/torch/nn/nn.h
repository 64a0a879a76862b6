// Modules, their functions and optimizers, data sets, files.
#pragma once
#include "lamella/nn/activations.h"
#include "lamella/nn/containers.h"
#include "lamella/nn/data/chunks.h"
#include "lamella/nn/embeddings.h"
#include "lamella/nn/losses.h"
#include "lamella/nn/modules.h"
#include "lamella/nn/optimizers.h"
#include "lamella/nn/recurrent.h"
#include "lamella/nn/schedulers.h"
#include "lamella/nn/serialize/save.h"
#include "lamella/nn/transformer.h"
#include "lamella/nn/windows.h"
