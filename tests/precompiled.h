// The slow headers that the tests, the benchmark models and the program share; precompiled once.
#pragma once

#include <torch/torch.h>

#if __has_include(<gtest/gtest.h>)
#include <gtest/gtest.h>
#endif
