/// Text for a character model.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <random>
#include <utility>

namespace tandem::cli {

struct Corpus {
  at::Tensor tokens;  ///< each character's number in the vocabulary
  int64_t vocabulary = 0;
};

/// All .txt files of a folder, in the order of their names; throws Error when there is too little text for
/// one piece of `length`.
Corpus load_corpus(const std::filesystem::path& folder, int64_t length);

/// `batch` random pieces of `length` characters, and the characters that follow each.
std::pair<at::Tensor, at::Tensor> draw_batch(const Corpus& corpus, int64_t batch, int64_t length,
                                             std::mt19937_64& random);

}  // namespace tandem::cli
