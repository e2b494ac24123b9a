#include "backends/registry.h"
#include "passes/graphs.h"

#include <tandem/backend.h>
#include <tandem/error.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

struct Chain {
  GraphWriter w;
  Value x, sine, flat, wide;

  Chain() {
    x = w.input({3, 4});
    sine = w.call("aten::sin", {x});
    flat = w.call("aten::view", {sine, ints({12})});
    wide = w.call("aten::cos", {flat});
    w.graph.set_outputs({wide});
  }

  std::string complaint() const {
    try {
      find_backend("debug")->compile(w.graph, {})->run({at::rand({3, 4}, at::kDouble)});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace

TEST(DebugBackend, AGraphThatTellsTheTruthRuns) {
  Chain chain;
  EXPECT_EQ(chain.complaint(), "");
  at::Tensor in = at::rand({3, 4}, at::kDouble);
  EXPECT_TRUE(
      at::equal(find_backend("debug")->compile(chain.w.graph, {})->run({in})[0], in.sin().view(12).cos()));
}

TEST(DebugBackend, NamesTheNodeWhoseSizesAreWrong) {
  Chain chain;
  chain.w.graph.meta(chain.wide).sizes = {11};
  expect_part(chain.complaint(), "node 2, aten::cos: result " + chain.w.graph.name(chain.wide) +
                                     " has sizes [12] where the record has [11]");
}

TEST(DebugBackend, NamesTheNodeWhoseDtypeIsWrong) {
  Chain chain;
  chain.w.graph.meta(chain.sine).dtype = at::kFloat;
  expect_part(chain.complaint(), "node 0, aten::sin");
}

TEST(DebugBackend, ChecksStridesWhereThereIsMoreThanOneElement) {
  Chain chain;
  chain.w.graph.meta(chain.sine).strides = {1, 3};
  expect_part(chain.complaint(), "strides [4, 1] where the record has [1, 3]");
  GraphWriter w;
  Value row = w.call("aten::sin", {w.input({1, 4})});
  w.graph.meta(row).strides = {77, 1};
  w.graph.set_outputs({row});
  EXPECT_NO_THROW(find_backend("debug")->compile(w.graph, {})->run({at::rand({1, 4}, at::kDouble)}));
}

TEST(DebugBackend, NoticesMemoryThatIsSharedOrApartAgainstTheRecord) {
  Chain view;
  view.w.graph.meta(view.flat).storage = 99;
  expect_part(view.complaint(), "node 1, aten::view");
  Chain fresh;
  fresh.w.graph.meta(fresh.sine).storage = fresh.w.graph.meta(fresh.x).storage;
  expect_part(fresh.complaint(), "node 0, aten::sin");
}

TEST(Backends, AreFoundByNameAndCanBeReplaced) {
  EXPECT_EQ(find_backend("eager")->name(), "eager");
  struct Mine : Backend {
    std::string v;
    int* resets;
    Mine(std::string v, int* resets) : v(std::move(v)), resets(resets) {}
    std::string name() const override { return "mine"; }
    std::string version() const override { return v; }
    std::shared_ptr<Executable> compile(const Graph&, const CompileContext&) override {
      return boxed([](Tensors&& in) { return Tensors{in[0] + 1}; });
    }
    void reset() override { ++*resets; }
  };
  static int resets = 0;
  register_backend(std::make_shared<Mine>("1", &resets));
  register_backend(std::make_shared<Mine>("2", &resets));
  EXPECT_EQ(find_backend("mine")->version(), "2");
  EXPECT_EQ(backends(), (std::vector<std::string>{"debug", "eager", "fuse", "loops", "mine"}));
  EXPECT_TRUE(at::equal(find_backend("mine")->compile({}, {})->run({at::zeros({2})})[0], at::ones({2})));
  reset_backends();
  EXPECT_EQ(resets, 1);
  try {
    find_backend("nobody's");
    FAIL();
  } catch (const Error& error) {
    expect_part(error.what(), "debug, eager, fuse, loops, mine");
  }
  EXPECT_THROW(register_backend(nullptr), Error);
}

}  // namespace tandem
