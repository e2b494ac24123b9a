/// A local store in a folder of its own, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "cache/local_store.h"
#include "cache/scratch_folder.h"
#include "tandem/error.h"

namespace tandem::cache {

namespace fs = std::filesystem;
using State = Fetched::State;

constexpr uint64_t kMuch = uint64_t(1) << 30;
inline const std::string kName = "ab12", kOther = "cd34";

inline std::string incompressible(size_t size) {
  std::mt19937 random(1);
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = char(random());
  return bytes;
}

class LocalStoreTest : public testing::Test {
 protected:
  fs::path entry(const std::string& name) const { return folder / "entries" / name.substr(0, 2) / name; }
  fs::path artifact(const std::string& name) const { return folder / "artifacts" / name.substr(0, 2) / name; }

  std::set<std::string> names() const {
    std::set<std::string> result;
    for (const StoredFile& file : LocalStore(folder, "", kMuch).list()) result.insert(file.name);
    return result;
  }

  size_t files_in_folder() const {
    const auto files = test::files_below(folder);
    return size_t(std::count_if(files.begin(), files.end(),
                                [](const fs::path& file) { return file.filename() != "lock"; }));
  }

  ScratchFolder scratch;
  fs::path folder = scratch.path() / "cache";
  LocalStore store{folder, "", kMuch};
};

inline void expect_error(const std::function<void()>& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "no Error; expected one with: " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what() << "\nhas no: " << part;
  }
}

}  // namespace tandem::cache
