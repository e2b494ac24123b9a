/// Tandem compiles libtorch programs ahead of time: hand `tandem::compile` a C++ function, a torch::nn module
/// or a TorchScript module, and call and train what it returns exactly like the original. At the first call
/// with inputs of some kind the program is run once on tensors without data; what it did is recorded,
/// differentiated, split into a forward and a backward that keep little between them, and compiled; later
/// calls go straight to the compiled code.
#pragma once

#include <tandem/backend.h>
#include <tandem/build.h>
#include <tandem/cache.h>
#include <tandem/compile.h>
#include <tandem/compiled.h>
#include <tandem/contract.h>
#include <tandem/error.h>
#include <tandem/export.h>
#include <tandem/graph.h>
#include <tandem/memory.h>
#include <tandem/module.h>
#include <tandem/named.h>
#include <tandem/ops.h>
#include <tandem/options.h>
#include <tandem/pack.h>
#include <tandem/partition.h>
#include <tandem/passes.h>
#include <tandem/script.h>
#include <tandem/versions.h>
#include <tandem/wrapper.h>
