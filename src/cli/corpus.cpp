#include "corpus.h"

#include <tandem/error.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace fs = std::filesystem;

namespace tandem::cli {

namespace {

std::string read_texts(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw Error("there is no folder " + folder.string() + " to take text from; name one with --data");
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".txt") files.insert(entry.path());
  std::string text;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    text.append(std::istreambuf_iterator<char>(stream), {});
  }
  return text;
}

}  // namespace

Corpus load_corpus(const fs::path& folder, int64_t length) {
  const std::string text = read_texts(folder);
  if (static_cast<int64_t>(text.size()) <= length + 1)
    throw Error("the .txt files in " + folder.string() + " hold " + std::to_string(text.size()) +
                " characters, too few to train on; name another folder with --data");
  std::vector<int64_t> number(256, -1);
  for (unsigned char c : text) number[c] = 0;
  Corpus corpus;
  for (int64_t& n : number)
    if (n == 0) n = corpus.vocabulary++;
  std::vector<int64_t> tokens;
  for (unsigned char c : text) tokens.push_back(number[c]);
  corpus.tokens = at::tensor(tokens, at::kLong);
  return corpus;
}

std::pair<at::Tensor, at::Tensor> draw_batch(const Corpus& corpus, int64_t batch, int64_t length,
                                             std::mt19937_64& random) {
  std::vector<at::Tensor> pieces, following;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t start = random() % (corpus.tokens.size(0) - length - 1);
    pieces.push_back(corpus.tokens.narrow(0, start, length));
    following.push_back(corpus.tokens.narrow(0, start + 1, length));
  }
  return {at::stack(pieces), at::stack(following)};
}

}  // namespace tandem::cli
