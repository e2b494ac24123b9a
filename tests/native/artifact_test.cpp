// Machine code as bytes: what comes back, and what is refused.
#include "loops/kernels.h"
#include "native/compiler.h"
#include "native/launches.h"
#include "native/llvm/plugin.h"
#include "native/long_form.h"
#include "native/machine_code.h"
#include "base/processor.h"
#include "support/mutate.h"
#include "support/new_process.h"

#include <tandem/error.h>

#include <fstream>

#include "base/sha256.h"

namespace tandem::native {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes bytes_of(const loops::Kernel& kernel) { return code_of(std::span(&kernel, 1)).front()->bytes(); }

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Three rows of softmax.
std::vector<float> run_softmax(loops::Code code) {
  constexpr int64_t columns = 40;
  std::vector<float> x(3 * columns), out(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const int64_t shape[] = {1, 0, 3, columns, columns, 1, columns, 1};
  void* const buffers[] = {x.data(), out.data()};
  code(buffers, shape, nullptr, 0, 3);
  return out;
}

TEST(Artifact, GivesItsCodeBack) {
  NEEDS_COMPILER();
  const Bytes bytes = bytes_of(loops::softmax());
  const CodePointer before = load_code(loops::softmax(), bytes);
  forget_code();
  const CodePointer loaded = load_code(loops::softmax(), bytes);
  ASSERT_TRUE(loaded);
  EXPECT_NE(loaded, before);
  EXPECT_EQ(run_softmax(loaded->entry()), run_softmax(before->entry()));
  EXPECT_EQ(loaded->bytes(), bytes);
  EXPECT_EQ(code_of(std::vector{loops::softmax()}).front(), loaded);
}

bool is_loaded(const char* library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}

void expect_loaded_without_llvm(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const Bytes bytes(std::istreambuf_iterator<char>(in), {});
  const CodePointer loaded = load_code(loops::softmax(), bytes);
  ASSERT_TRUE(loaded);
  EXPECT_GT(run_softmax(loaded->entry()).front(), 0);
  EXPECT_FALSE(is_loaded(plugin_file));
}

TEST(Artifact, IsLoadedWithoutLlvm) {
  // The new process comes here as well, and finds the bytes where the first one left them.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string file = testing::TempDir() + "tandem_softmax_code";
  if (!testing::internal::InDeathTestChild()) {
    NEEDS_COMPILER();
    std::ofstream(file, std::ios::binary) << text_of(bytes_of(loops::softmax()));
    EXPECT_TRUE(is_loaded(plugin_file));
  }
  IN_A_NEW_PROCESS(expect_loaded_without_llvm(file));
  std::remove(file.c_str());
}

TEST(Artifact, OfAnotherKernelIsRefused) {
  NEEDS_COMPILER();
  const Bytes bytes = bytes_of(loops::softmax());
  forget_code();
  EXPECT_FALSE(load_code(loops::layer_norm(), bytes));
  loops::Kernel almost = loops::softmax();
  almost.exprs[3].op = loops::Op::Expm1;
  EXPECT_FALSE(load_code(almost, bytes));
  EXPECT_TRUE(load_code(loops::softmax(), bytes));
}

Image some_image() { return {{0xC3}, {}, 0}; }

TEST(Artifact, ForOtherProcessorsIsRefused) {
  const std::string text = to_string(loops::softmax());
  const std::string& all = processor_features();
  for (const std::string& lacking : {all + ",avx1024f", "avx1024f," + all, std::string("avx1024f")})
    EXPECT_FALSE(load_code(loops::softmax(), to_bytes(some_image(), text, lacking))) << lacking;
  for (const std::string& offered : {all, all.substr(0, all.find(',')), std::string()}) {
    EXPECT_TRUE(load_code(loops::softmax(), to_bytes(some_image(), text, offered))) << offered;
    forget_code();
  }
}

TEST(Artifact, WithAnEntryBeyondItsCodeIsRefused) {
  Image image = some_image();
  image.entry = 1;
  EXPECT_FALSE(load_code(loops::softmax(), to_bytes(image, to_string(loops::softmax()), "")));
}

TEST(Artifact, ThatIsDamagedIsRefused) {
  NEEDS_COMPILER();
  const std::string whole = text_of(bytes_of(loops::softmax()));
  forget_code();
  test::Mutator mutate(5);
  for (int i = in_long_form(1'000'000, 20'000); i > 0; --i) {
    const std::string damaged = mutate(whole);
    ASSERT_TRUE(damaged == whole || !load_code(loops::softmax(), bytes_of(damaged)));
  }
}

/// As one who wants to be believed would do it: with the hash of what he wrote. Where it is taken it must be
/// taken whole, and it is not run.
TEST(Artifact, ThatIsForgedIsReadWithinItsBounds) {
  NEEDS_COMPILER();
  constexpr size_t digest = 32;
  std::string content = text_of(bytes_of(loops::softmax()));
  content.resize(content.size() - digest);
  test::Mutator mutate(6);
  int accepted = 0;
  for (int i = in_long_form(1'000'000, 20'000); i > 0; --i) {
    forget_code();
    std::string forged = mutate(content);
    forged += sha256_bytes(forged);
    if (const CodePointer code = load_code(loops::softmax(), bytes_of(forged))) {
      EXPECT_EQ(code->bytes(), bytes_of(forged));
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 0) << "only what is wrong in its header is tried";
  forget_code();
}

TEST(Link, RefusesWhatReachesBeyondTheObject) {
  NEEDS_COMPILER();
  const std::string whole = text_of(compile_object(loops::softmax(), processor_features()));
  test::Mutator mutate(7);
  const auto function = [](const std::string& name) {
    if (name != "exp_f32_32") throw Error("no " + name);
    return function_object(name, processor_features());
  };
  int linked = 0;
  for (int i = in_long_form(1'000'000, 20'000); i > 0; --i) {
    try {
      const Image image = link(bytes_of(mutate(whole)), kernel_symbol, function);
      ASSERT_LT(image.entry, image.code.size());
      ++linked;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(linked, 0);
}

}  // namespace
}  // namespace tandem::native
