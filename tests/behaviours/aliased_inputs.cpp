// Rows C: inputs given twice, overlapping, or beside each other in one storage.
#include "behaviours/typed.h"

namespace tandem::behaviours {
namespace {

Tensors unsqueeze_both(const Tensors& in) {
  in[0].unsqueeze_(0);
  in[1].unsqueeze_(0);
  return {in[0] + in[1]};
}
Tensors transpose_first(const Tensors& in) {
  in[0].t_();
  return {in[0] + in[1]};
}

void one_object_serves_both(const Callable& fn) {
  for (bool together_first : {true, false}) {
    Compiled fast(fn, {.debug_asserts = true});
    for (bool together : {together_first, !together_first}) {
      at::Tensor x = torch::ones({2, 2}), y = together ? x : torch::ones({2, 2}), u = torch::ones({2, 2}),
                 v = together ? u : torch::ones({2, 2});
      EXPECT_TRUE(same_values(fast({x, y})[0], fn({u, v})[0]));
      EXPECT_EQ(x.sizes(), u.sizes());
      EXPECT_EQ(y.sizes(), v.sizes());
    }
  }
}

Tensors write_first(const Tensors& in) {
  in[0].add_(1);
  return {in[0] + in[1]};
}
Tensors write_both(const Tensors& in) {
  in[0].mul_(3);
  in[1].mul_(2);
  return {};
}

std::function<Tensors(at::Tensor)> strided_twice(std::vector<int64_t> sizes, std::vector<int64_t> strides,
                                                 int64_t first, int64_t second) {
  return [=](at::Tensor x) {
    return Tensors{x.as_strided(sizes, strides, first), x.as_strided(sizes, strides, second)};
  };
}

std::vector<Case> neighbours() {
  std::vector<Case> cases;
  auto add = [&](std::vector<int64_t> sizes, std::function<Tensors(at::Tensor)> cut) {
    cases.push_back({write_both, both_cut_from(sizes, cut)});
  };
  add({4, 4}, [](at::Tensor x) { return Tensors{x.slice(0, 0, 2), x.slice(0, 2, 4)}; });
  add({4, 4}, [](at::Tensor x) { return Tensors{x.slice(1, 0, 2), x.slice(1, 2, 4)}; });
  add({64}, strided_twice({4, 4}, {8, 1}, 0, 28));
  for (int64_t offset : {22, 23, 24, 25}) add({64}, strided_twice({4, 4}, {9, 1}, 0, offset));
  add({256}, [](at::Tensor x) { return Tensors{x.as_strided({2, 4, 3}, {110, 24, 4}, 5), x.slice(0, 196)}; });
  return cases;
}

Tensors detached_rows(const at::Tensor& x, int64_t second) {
  at::Tensor plain = x.detach();
  return {plain.slice(0, 0, 2), plain.slice(0, second, second + 2)};
}

/// The first two share memory and have no autograd base, the third may require grad.
Maker raw_aliases(bool third_requires_grad) {
  return [=] {
    Scene scene = leaves({{4}, {4}}, {false, third_requires_grad})();
    at::Tensor x = scene.arguments[0];
    scene.others = {x};
    scene.arguments = {x.detach(), x.detach(), scene.arguments[1]};
    return scene;
  };
}

Tensors views_of_one(at::Tensor x) { return {x.view({-1}), x[0]}; }

/// Views of one tensor in the places that have the same number.
std::vector<Maker> sharing(std::vector<int> groups) {
  return both([=](bool rg) -> Maker {
    return [=] {
      size_t count = size_t(*std::max_element(groups.begin(), groups.end())) + 1;
      Scene scene =
          non_leaves(std::vector<std::vector<int64_t>>(count, {2, 2}), std::vector<bool>(count, rg))();
      scene.others = scene.arguments;
      scene.arguments.clear();
      for (int group : groups) scene.arguments.push_back(scene.others[size_t(group)].view({2, 2}));
      return scene;
    };
  });
}

const bool aliased_inputs_rows = add_rows({
    {"C1",
     {{[](const Tensors& in) { return Tensors{in[0] + in[1]}; }, {repeated(leaves({{3}}, {true}), 2)}}}},
    {"C2",
     {{[](const Tensors& in) {
         in[0].t_();
         in[1].unsqueeze_(0);
         return Tensors{in[0] + in[1]};
       },
       {repeated(non_leaves({{2, 2}}, {true}), 2)}}}},
    {"C3",
     {{[](const Tensors& in) {
         in[0][0].add_(1);
         return Tensors{in[2]};
       },
       {[] {
         Scene scene = non_leaves({{2, 2}, {2, 2}}, {false, false})();
         scene.arguments.push_back(scene.arguments[0]);
         return scene;
       }}}}},
    {"C4",
     {{[](const Tensors& in) {
         const at::Tensor &x = in[0], &y = in[1];
         y.mul_(2);
         at::Tensor d = x + 4 + y;
         return Tensors{x + 1, x + 2, x + 3, d, d.view({-1})};
       },
       {repeated(non_leaves({{2, 2}}, {false}), 2)}}}},
    {.id = "C6", .check = [] { one_object_serves_both(unsqueeze_both); }},
    {.id = "C7",
     .cases = {{transpose_first,
                {repeated(non_leaves({{2, 2}}, {true}), 2), repeated(non_leaves({{2, 2}}, {false}), 2)}}},
     .check = [] { one_object_serves_both(transpose_first); }},
    {"C8",
     {{write_first,
       both_cut_from({2, 4}, [](at::Tensor x) { return Tensors{x[0], x[0]}; }),
       {.together = false}}}},
    {"C9",
     {{write_first,
       both_cut_from({2, 4}, [](at::Tensor x) { return Tensors{x[0], x}; }),
       {.together = false}}}},
    {"C11",
     {{[](const Tensors& in) {
         in[2].mul_(2);
         return Tensors{in[1] + 1, in[2].view({-1})};
       },
       sharing({0, 1, 0})}}},
    {"C13",
     {{transpose_first, both_cut_from({4}, [](at::Tensor x) { return Tensors{x.view({4}), x.view({4})}; })}}},
    {"C14",
     {{[](const Tensors& in) {
         in[0].mul_(2);
         return Tensors{in[1] + 1, in[2] + 1};
       },
       both(raw_aliases)}}},
    {"C15",
     {{[](const Tensors& in) {
         in[1].add_(1);
         in[3].unsqueeze_(0);
         return Tensors{in[0] + in[2] + in[3], in[1].view({-1})};
       },
       sharing({0, 1, 0, 1})}}},
    {"C17", neighbours()},
    {"C18",
     {{write_first, both_cut_from({4, 4}, [](at::Tensor x) { return detached_rows(x, 2); })},
      {write_first, both_cut_from({4, 4}, [](at::Tensor x) { return detached_rows(x, 1); })}}},
    {"C20",
     {{[](const Tensors& in) {
         in[2].mul_(2);
         in[1].t_();
         at::Tensor tmp = in[0] + in[2];
         return Tensors{tmp.view({-1}), in[1].t(), tmp.view({-1}).unsqueeze(0)};
       },
       sharing({0, 1, 0}),
       {.together = false}}}},
    {.id = "C22",
     .cases = {{[](const Tensors& in) {
                  return Tensors{in[0].view(in[0].sizes()), in[1].view(in[1].sizes())};
                },
                both_cut_from({2, 2}, views_of_one)}},
     .check =
         [] {
           hold_typed(
               [](const Pair& x) {
                 return map_tensors(x, [](const at::Tensor& t) { return t.view(t.sizes()); });
               },
               one_pair, both_cut_from({2, 2}, views_of_one));
         }},
    {.id = "C23",
     .cases = {{[](const Tensors& in) {
                  in[0].add_(in[2]);
                  in[1].add_(in[2]);
                  return Tensors{in[0] * 2};
                },
                {[] {
                  at::Tensor x = torch::randn(6);
                  return Scene{.arguments = {x, x.slice(0, 1, 4), torch::full({}, 2.f)}, .others = {x}};
                }}},
               {[](const Tensors& in) {
                  in[0].add_(1);
                  in[1].add_(1);
                  return Tensors{};
                },
                {cut_from({4}, false,
                          [](at::Tensor x) {
                            at::Tensor v = x.unsqueeze(0);
                            return Tensors{v, v};
                          }),
                 cut_from({4}, false,
                          [](at::Tensor x) {
                            at::Tensor v = x.slice(0, 1, 3);
                            return Tensors{v, v};
                          }),
                 cut_from({4}, false,
                          [](at::Tensor x) { return Tensors{x.unsqueeze(0), x.unsqueeze(0)}; })}}},
     .waits_for = "changing sizes"},
});

}  // namespace
}  // namespace tandem::behaviours
