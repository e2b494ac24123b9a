// The headers that nearly every file of the extension needs; precompiled once.
#pragma once

#include <torch/extension.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
