// Modules, their functions and optimizers, data sets, files.
#pragma once
#include "lamella/nn/data/datasets.h"
#include "lamella/nn/data/loader.h"
#include "lamella/nn/modules.h"
#include "lamella/nn/optim.h"
#include "lamella/nn/recurrent.h"
#include "lamella/nn/serialize/save.h"
#include "lamella/nn/transformer.h"
