/// Runs a function as it is and compiled, on equal tensors, and compares everything that a caller can see.
#pragma once

#include <optional>
#include <regex>

#include "support/compare.h"

namespace tandem::test {

/// The tensors of one call: what is given to the function, whose gradients count, and what else may change.
struct Scene {
  Tensors arguments, leaves, others;
};
using Maker = std::function<Scene()>;

struct Expectations {
  bool compiled = true;               ///< false: the function may be run as it is
  bool write_outputs = true;          ///< afterwards every output is written in place in both worlds
  bool differentiate_written = true;  ///< and differentiated once more
  bool same_bases = true;             ///< outputs share autograd bases as in eager
  bool same_versions = true;          ///< of arguments and outputs as many writes are counted
  /// once all roots are differentiated together; where more than two of their gradients meet at the call's
  /// boundary, sums are associated in another way
  bool together = true;
  Options options = {};
};

inline at::Tensor leaf(at::IntArrayRef sizes, bool requires_grad = true) {
  return torch::randn(sizes).requires_grad_(requires_grad);
}

/// One argument of each of these sizes, a leaf.
inline Maker leaves(std::vector<std::vector<int64_t>> sizes, std::vector<bool> requires_grad) {
  return [=] {
    Scene scene;
    for (size_t i = 0; i < sizes.size(); ++i) {
      scene.arguments.push_back(leaf(sizes[i], requires_grad[i]));
      if (requires_grad[i]) scene.leaves.push_back(scene.arguments[i]);
    }
    return scene;
  };
}

/// The same, each argument a leaf plus one: no leaf where it requires grad.
inline Maker non_leaves(std::vector<std::vector<int64_t>> sizes, std::vector<bool> requires_grad) {
  return [=] {
    Scene scene = leaves(sizes, requires_grad)();
    for (at::Tensor& argument : scene.arguments) argument = argument + 1;
    return scene;
  };
}

/// Every graph that a compile made is well formed.
inline void verify(const Explanation& explanation) {
  EXPECT_NO_THROW(explanation.joint.verify()) << explanation.joint.to_string();
  EXPECT_NO_THROW(explanation.forward.verify()) << explanation.forward.to_string();
  EXPECT_NO_THROW(explanation.backward.verify()) << explanation.backward.to_string();
  EXPECT_NO_THROW(Graph::parse(explanation.joint.to_string()).verify());
}

namespace compare_detail {

/// What is the same object, what lies on one storage, what has one autograd base: for each pair of tensors.
struct Relations {
  std::vector<std::string> pairs;
  friend bool operator==(const Relations&, const Relations&) = default;
};

inline at::Tensor base_of(const at::Tensor& tensor) {
  return tensor.is_view() ? at::Tensor(tensor._base()) : tensor;
}

inline Relations relations(const Tensors& outputs, const Scene& scene, bool bases) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (size_t i = 0; i < outputs.size(); ++i) all.emplace_back("output " + std::to_string(i), outputs[i]);
  for (size_t i = 0; i < scene.arguments.size(); ++i)
    all.emplace_back("argument " + std::to_string(i), scene.arguments[i]);
  for (size_t i = 0; i < scene.others.size(); ++i)
    all.emplace_back("other " + std::to_string(i), scene.others[i]);
  Relations found;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j) {
      const at::Tensor &a = all[i].second, &b = all[j].second;
      if (!a.defined() || !b.defined() || !a.has_storage() || !b.has_storage()) continue;
      std::string names = all[i].first + " and " + all[j].first;
      if (a.is_same(b)) found.pairs.push_back(names + " are one tensor");
      if (a.storage().is_alias_of(b.storage())) found.pairs.push_back(names + " share memory");
      if (bases && base_of(a).is_same(base_of(b))) found.pairs.push_back(names + " have one base");
    }
  return found;
}

struct World {
  Scene scene;
  Tensors outputs;
  /// how many writes to arguments were counted, then the versions of outputs
  std::vector<int64_t> versions;
  std::string failure;
};

inline std::vector<int64_t> versions_of(const Tensors& tensors) {
  std::vector<int64_t> versions;
  for (const at::Tensor& t : tensors)
    versions.push_back(t.defined() && !t.is_inference() ? int64_t(t._version()) : 0);
  return versions;
}

inline World call(const Callable& fn, const Maker& make, uint64_t seed) {
  World world;
  torch::manual_seed(seed);
  world.scene = make();
  auto before = versions_of(world.scene.arguments);
  torch::manual_seed(seed + 1000);
  world.failure = message([&] { world.outputs = fn(world.scene.arguments); });
  world.versions = versions_of(world.scene.arguments);
  for (size_t i = 0; i < before.size(); ++i) world.versions[i] -= before[i];
  for (int64_t version : versions_of(world.outputs)) world.versions.push_back(version);
  return world;
}

/// Outputs, and arguments that a write made part of a graph. Others are left out: gradients that reach a leaf
/// past the function are added in another order.
inline Tensors roots_of(const World& world, const std::vector<int64_t>& written) {
  Tensors roots;
  for (const at::Tensor& t : world.outputs)
    if (t.defined() && t.requires_grad()) roots.push_back(t);
  for (size_t i = 0; i < world.scene.arguments.size(); ++i) {
    const at::Tensor& t = world.scene.arguments[i];
    if (t.defined() && t.requires_grad() && !t.is_leaf() && written[i]) roots.push_back(t);
  }
  return roots;
}

inline bool retains(uint64_t seed) { return seed % 2 == 0; }

/// One backward for each root, the graph retained, or one for all of them along random tangents.
inline std::string differentiate(const World& world, const std::vector<int64_t>& written, uint64_t seed,
                                 bool together) {
  Tensors roots = roots_of(world, written);
  const bool apart = retains(seed) || !together;
  torch::manual_seed(seed);
  return message([&] {
    if (roots.empty()) return;
    if (apart) {
      for (const at::Tensor& root : roots)
        (root.is_complex() ? at::real(root).sum() : root.sum()).backward({}, /*retain_graph=*/true);
    } else {
      Tensors tangents;
      for (const at::Tensor& root : roots)
        tangents.push_back(torch::randn(root.sizes(), root.options().requires_grad(false)));
      torch::autograd::backward(roots, tangents);
    }
  });
}

inline void expect_same_state(const World& got, const World& want, const std::string& when) {
  expect_same(got.outputs, want.outputs, when + ": output");
  expect_same(got.scene.arguments, want.scene.arguments, when + ": argument");
  expect_same(got.scene.others, want.scene.others, when + ": other tensor");
}

inline void expect_same_gradients(const World& got, const World& want) {
  for (size_t i = 0; i < want.scene.leaves.size(); ++i)
    EXPECT_TRUE(same_values(got.scene.leaves[i].grad(), want.scene.leaves[i].grad()))
        << "gradient of leaf " << i;
}

/// The autograd nodes of outputs that are views, without the number that tells a write in place from the
/// view; nodes of the user's own, which compiled code stands in for, are left out.
inline std::vector<std::string> view_kinds(const World& world, const World& other) {
  static const std::regex generated("[A-Z][A-Za-z]*Backward[0-9]+");
  std::vector<std::string> kinds;
  for (size_t i = 0; i < world.outputs.size(); ++i) {
    const at::Tensor &a = world.outputs[i], &b = other.outputs[i];
    if (!a.defined() || !a.is_view() || !b.is_view()) continue;
    std::string names[2];
    for (int k = 0; k < 2; ++k)
      if (auto node = (k ? b : a).grad_fn()) names[k] = node->name();
    if (std::regex_match(names[0], generated) || std::regex_match(names[1], generated))
      kinds.push_back("output " + std::to_string(i) + ": " +
                      names[0].substr(0, names[0].find_last_not_of("0123456789") + 1));
  }
  return kinds;
}

inline std::vector<std::string> write_outputs(const World& world) {
  std::vector<std::string> failures;
  for (const at::Tensor& output : world.outputs) {
    if (!output.defined()) continue;
    failures.push_back(message([&] { output.mul_(3); }).empty() ? "written" : "refused");
  }
  return failures;
}

/// `fast` stands for the compiled function.
inline void compare_call(const Callable& fn, const Callable& fast, const Maker& make,
                         const Expectations& expect, uint64_t seed) {
  World want = call(fn, make, seed), got = call(fast, make, seed);
  ASSERT_EQ(got.failure, "") << "eager: " << want.failure;
  ASSERT_EQ(want.failure, "");
  expect_same_state(got, want, "after the call");
  if (testing::Test::HasFailure() || got.outputs.size() != want.outputs.size()) return;
  if (expect.same_versions) {
    EXPECT_EQ(got.versions, want.versions)
        << "other writes to arguments, then outputs, are counted than in eager";
  }
  EXPECT_EQ(relations(got.outputs, got.scene, expect.same_bases).pairs,
            relations(want.outputs, want.scene, expect.same_bases).pairs);
  if (expect.same_bases) {
    EXPECT_EQ(view_kinds(got, want), view_kinds(want, got));
  }
  const std::vector<int64_t> written = want.versions;
  auto compare_gradients = [&](const std::string& when) {
    std::string wanted = differentiate(want, written, seed, expect.together),
                failure = differentiate(got, written, seed, expect.together);
    EXPECT_EQ(failure.empty(), wanted.empty()) << when << ": eager: " << wanted << "\ncompiled: " << failure;
    expect_same_gradients(got, want);
    expect_same_state(got, want, when);
  };
  compare_gradients("after the backward");
  if (!expect.write_outputs) return;
  EXPECT_EQ(write_outputs(got), write_outputs(want));
  expect_same_state(got, want, "after the outputs were written");
  if (retains(seed) && expect.differentiate_written)
    compare_gradients("after a backward through written outputs");
}

}  // namespace compare_detail

/// Compares on both backends, with writes kept and returned, the compiled object called on two sets of data.
/// Gives the reason why the function ran as it is, if it did.
inline std::string compare(const Callable& fn, const Maker& make, const Expectations& expect = {}) {
  std::string eager_reason;
  for (const char* backend : {"eager", "debug"})
    for (bool keep : {true, false}) {
      SCOPED_TRACE(std::string("backend ") + backend + (keep ? ", writes kept" : ", writes returned"));
      Options options = expect.options;
      options.backend = backend;
      options.keep_input_mutations = keep;
      Compiled compiled(fn, options);
      torch::manual_seed(7);
      Scene scene = make();
      Explanation explanation = compiled.explain(scene.arguments);
      eager_reason = explanation.eager_reason;
      EXPECT_TRUE(eager_reason.empty() || !expect.compiled) << eager_reason;
      verify(explanation);
      for (uint64_t seed : {2, 3}) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        compare_detail::compare_call(fn, [&](const Tensors& in) { return compiled(in); }, make, expect, seed);
      }
      if (testing::Test::HasFailure()) return eager_reason;
    }
  return eager_reason;
}

/// Right in any way, be it that the function runs as it is.
inline void expect_same(const Maker& make, const Callable& fn) {
  compare(fn, make, {.compiled = false, .write_outputs = false});
}

/// With inputs that require grad and with ones that do not.
inline void compare_both(const Callable& fn, const std::function<Maker(bool requires_grad)>& make,
                         const Expectations& expect = {}) {
  for (bool requires_grad : {false, true}) {
    SCOPED_TRACE(requires_grad ? "inputs require grad" : "inputs do not require grad");
    compare(fn, make(requires_grad), expect);
  }
}

}  // namespace tandem::test
