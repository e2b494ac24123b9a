// Builds of libtorch with CUDA export a std::filesystem that crashes.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace {

TEST(Filesystem, IsThatOfLibstdcxx) {
  using RemoveAll = std::uintmax_t (*)(const std::filesystem::path&, std::error_code&);
  const RemoveAll remove_all = &std::filesystem::remove_all;
  Dl_info found{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(remove_all), &found), 0);
  EXPECT_NE(std::string(found.dli_fname).find("libstdc++"), std::string::npos) << found.dli_fname;
}

}  // namespace
