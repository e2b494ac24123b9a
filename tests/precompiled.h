// The slow headers that the tests share; precompiled once.
#pragma once

#include <torch/torch.h>
#include <gtest/gtest.h>
