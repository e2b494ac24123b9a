// Programs that random search found, each made small; every one differed from eager once.
#include "runtime/compare.h"

namespace tandem {
namespace {

const test::Maker plain = test::leaves({{3}, {3}}, {false, false}), matrix = test::leaves({{2, 3}}, {true}),
                  computed = test::non_leaves({{2, 3}}, {true});

TEST(Found, AViewReturnedTwiceIsOneTensor) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::Tensor a = v[0].t();
    return Tensors{a, a};
  });
}

TEST(Found, AnExpandedInputIsWritten) {
  test::expect_same([] { return test::Scene{{torch::randn({1}).expand({2})}, {}, {}}; },
                    [](const Tensors& v) {
                      v[0].index_fill_(0, at::zeros({1}, at::kLong), 3);
                      return Tensors{v[0]};
                    });
}

TEST(Found, AListThatNamesATensorTwice) {
  test::expect_same(plain, [](const Tensors& v) {
    at::_foreach_add_({v[0], v[0]}, {v[0], v[1]});
    return Tensors{v[0]};
  });
  test::expect_same(plain, [](const Tensors& v) {
    at::_foreach_add_({v[0], v[1]}, {v[1], v[0]});
    return Tensors{v[0]};
  });
}

TEST(Found, AListWriteCountsVersions) {
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor y = v[0].cos();
    at::_foreach_mul_({v[0]}, 2);
    return Tensors{y};
  });
}

TEST(Found, AWriteThroughOverlappingWindows) {
  test::expect_same(plain, [](const Tensors& v) {
    v[0].unfold(0, 2, 1).exp_();
    return Tensors{v[0]};
  });
}

TEST(Found, AViewMadeUnderNoGradOfWhatIsNotReturned) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::Tensor y = v[0] + 3;
    at::NoGradGuard no_grad;
    return Tensors{y.t()};
  });
}

TEST(Found, ALeafGetsOtherSizesUnderNoGrad) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::NoGradGuard no_grad;
    v[0].unsqueeze_(0);
    return Tensors{v[0]};
  });
}

TEST(Found, AViewOfAnInputGetsOtherStridesInPlace) {
  test::expect_same(plain, [](const Tensors& v) {
    v[0].slice(0, 0, 4, 2).transpose_(0, -1);
    return Tensors{v[1]};
  });
}

TEST(Found, OneOfTwoGradientsIsRefused) {
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor c = v[0].cos();
    v[0].sin_();
    return Tensors{v[0], c};
  });
}

TEST(Found, RandomNumbersIntoAnInputWithGaps) {
  test::expect_same([] { return test::Scene{{torch::randn({4}).slice(0, 0, 4, 2)}, {}, {}}; },
                    [](const Tensors& v) {
                      v[0].bernoulli_(0.5);
                      return Tensors{v[0]};
                    });
}

TEST(Found, AStridedViewOfAWrittenInputThatBeginsLater) {
  test::expect_same([] { return test::Scene{{torch::randn({20}).slice(0, 5, 15)}, {}, {}}; },
                    [](const Tensors& v) {
                      at::Tensor y = v[0].as_strided({2}, {1}, 6);
                      v[0].mul_(2);
                      return Tensors{y + 1};
                    });
  // What lies between its elements is memory too.
  test::expect_same(
      [] {
        at::Tensor x = torch::randn({20});
        return test::Scene{{x.slice(0, 4, 12, 2)}, {}, {x}};
      },
      [](const Tensors& v) {
        at::Tensor y = v[0].as_strided({3}, {1}, 4);
        v[0].mul_(2);
        return Tensors{y + 1};
      });
}

TEST(Found, AStridedViewIsReturnedWithItsWrittenBase) {
  test::expect_same(test::leaves({{20}}, {false}), [](const Tensors& v) {
    at::Tensor y = (v[0] * 2).slice(0, 5, 15), z = y.as_strided({2}, {1}, 6);
    y.relu_();
    return Tensors{y, z};
  });
  test::expect_same(test::leaves({{20}}, {false}), [](const Tensors& v) {
    at::Tensor y = v[0].slice(0, 5, 15), z = y.as_strided({2}, {1}, 6);
    return Tensors{z};
  });
}

TEST(Found, ATensorThatOverlapsTwoOthers) {
  test::expect_same(
      [] {
        at::Tensor x = torch::randn({10});
        return test::Scene{{x.slice(0, 0, 2), x.slice(0, 4, 6), x.slice(0, 1, 5)}, {}, {x}};
      },
      [](const Tensors& v) {
        v[1].mul_(2);
        return Tensors{v[2] + 1, v[0] * 2};
      });
}

TEST(Found, AProductWrittenOverItsFactor) {
  const test::Maker square = test::leaves({{5, 5}}, {false});
  test::expect_same(square, [](const Tensors& v) {
    v[0].addmm_(v[0], v[0]);
    return Tensors{v[0] + 1};
  });
  test::expect_same(square, [](const Tensors& v) {
    at::matmul_out(const_cast<at::Tensor&>(v[0]), v[0], v[0]);
    return Tensors{v[0] + 1};
  });
}

TEST(Found, AViewOfAViewOfAWrittenInputTakesWrites) {
  const test::Maker x = test::non_leaves({{2}}, {true});
  test::compare(
      [](const Tensors& v) {
        at::Tensor y = v[0].unsqueeze(1).unsqueeze(2);
        v[0].relu_();
        return Tensors{y};
      },
      x, {.differentiate_written = false});
  test::compare([](const Tensors& v) { return Tensors{v[0].view({-1}).unsqueeze_(0)}; }, x);
  test::compare([](const Tensors& v) { return Tensors{v[0].as_strided({2}, {1}).slice(0, 1).mul_(2)}; }, x);
}

TEST(Found, AViewMadeUnderNoGradReturnedTwice) {
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor y = v[0] * 2, z;
    {
      at::NoGradGuard no_grad;
      z = y.select(1, 0);
    }
    return Tensors{z, z};
  });
}

TEST(Found, ALeafMadeInside) {
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor y = at::randn_like(v[0]).requires_grad_();
    return Tensors{y, y * v[0]};
  });
}

TEST(Found, APartIsWrittenOfALeafWithGaps) {
  const test::Maker x = [] {
    at::Tensor leaf = torch::randn({1, 4}).slice(-1, 0, 4, 2).detach().requires_grad_();
    return test::Scene{{leaf}, {leaf}, {}};
  };
  test::expect_same(x, [](const Tensors& v) {
    {
      at::NoGradGuard no_grad;
      v[0].view({-1}).mul_(3);
    }
    return Tensors{v[0] * 2};
  });
  test::expect_same(x, [](const Tensors& v) {
    {
      at::NoGradGuard no_grad;
      v[0].select(1, 0).mul_(3);
    }
    return Tensors{v[0] * 2};
  });
}

TEST(Found, AWriteOfAnotherDtypeIntoAPart) {
  const test::Maker x = [] {
    test::Scene scene = test::non_leaves({{3}}, {true})();
    scene.arguments.push_back(torch::randn({2}, at::kDouble));
    return scene;
  };
  test::expect_same(x, [](const Tensors& v) {
    v[0].slice(0, 0, 4, 2).add_(v[1]);
    return Tensors{v[1] * 2};
  });
}

TEST(Found, ASumInPlaceOfADtypeThatItDoesNotTake) {
  Callable fn = [](const Tensors& v) {
    v[0].cumsum_(0);
    return Tensors{v[0]};
  };
  Compiled fast(fn, {});
  EXPECT_EQ(test::message([&] { fast({torch::ones({3}, at::kBool)}); }).empty(),
            test::message([&] { fn({torch::ones({3}, at::kBool)}); }).empty());
  EXPECT_TRUE(test::same_values(fast({torch::ones({3})})[0], fn({torch::ones({3})})[0]));
}

TEST(Found, ViewsReturnedInAnotherOrderThanMade) {
  Callable fn = [](const Tensors& v) {
    at::Tensor a = v[0].select(0, 1), b = v[0].t();
    return Tensors{b, a};
  };
  Compiled fast(fn, {});
  at::Tensor x = test::leaf({2, 3}), y = x.detach().clone().requires_grad_();
  auto gradient = [](const Tensors& out, const at::Tensor& of) {
    return torch::autograd::grad({out[0].sum() + out[1].sum()}, {of})[0];
  };
  EXPECT_TRUE(test::same_tensor(gradient(fast({x}), x), gradient(fn({y}), y)));
}

TEST(Found, ACapturedTensorStartsToRequireGradAfterItWasWritten) {
  at::Tensor captured = torch::randn({3});
  Compiled fast(
      [&](const Tensors& v) {
        at::mul_out(captured, captured, v[0]);
        return Tensors{captured.requires_grad_()};
      },
      {});
  at::Tensor want = captured * 2;
  EXPECT_TRUE(test::same_values(fast({torch::full({3}, 2.f)})[0].detach(), want));
  EXPECT_TRUE(captured.requires_grad());
}

TEST(Found, AGradientThroughWhatAnArgumentWasComputedFrom) {
  Callable fn = [](const Tensors& v) {
    return Tensors{torch::autograd::grad({v[1].sum()}, {v[0]}, {}, true, true, /*allow_unused=*/true)[0] * 2};
  };
  for (bool first : {true, false}) {
    auto make = [&] {
      at::Tensor x = test::leaf({4}).clone(), y = x.select(0, 0);
      return first ? Tensors{x, y} : Tensors{y, x};
    };
    Callable program = [&](const Tensors& v) { return fn(first ? v : Tensors{v[1], v[0]}); };
    EXPECT_TRUE(test::same_values(Compiled(program, {})(make())[0], program(make())[0]));
  }
}

TEST(Found, AnInputIsDetachedAndRequiresGradAgain) {
  test::expect_same(computed, [](const Tensors& v) {
    v[0].detach_();
    v[0].requires_grad_();
    return Tensors{v[0].select(1, 1)};
  });
}

TEST(Found, AViewThatAutogradForbidsIsReturned) {
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor y = v[0].split(1, 0)[1];
    v[0].neg_();
    return Tensors{y.detach()};
  });
  Callable fn = [](const Tensors& v) {
    at::Tensor y = v[0].split(1, 0)[1];
    v[0].neg_();
    return Tensors{y};
  };
  EXPECT_NO_THROW(Compiled(fn, {})({test::leaf({2, 3}).clone()}));
}

TEST(Found, AQuotientThatWasWrittenAndIsComputedAgain) {
  Callable fn = [](const Tensors& v) {
    at::Tensor y = v[0] / v[0];
    return Tensors{at::atan2(y, v[0]), y};
  };
  Compiled fast(fn, {});
  at::Tensor x = test::leaf({3}), y = x.detach().clone().requires_grad_();
  auto gradient = [](const Tensors& out, const at::Tensor& of) {
    for (const at::Tensor& t : out) t.mul_(2);
    return torch::autograd::grad({out[1].sum()}, {of})[0];
  };
  EXPECT_TRUE(test::same_values(gradient(fast({x}), x), gradient(fn({y}), y)));
}

TEST(Found, TwoViewsOfAnInputWithGradientsOfTheirOwn) {
  for (bool window_first : {true, false}) {
    Callable fn = [=](const Tensors& v) {
      at::Tensor y = v[0].detach(), window = y.unfold(1, 2, 1), sum = y.addcmul_(v[1], v[1]);
      return window_first ? Tensors{window, sum} : Tensors{sum, window};
    };
    Compiled fast(fn, {});
    auto gradients = [](const auto& call) {
      torch::manual_seed(3);
      Tensors in = {test::leaf({2, 3}), test::leaf({2, 3})}, out = call(in);
      return torch::autograd::grad({out[0].sum() * 3 + out[1].sin().sum()}, in, {}, {}, false,
                                   /*allow_unused=*/true);
    };
    const Tensors got = gradients(fast), want = gradients(fn);
    EXPECT_EQ(got[0].defined(), want[0].defined());
    EXPECT_TRUE(test::same_values(got[1], want[1]));
  }
}

TEST(Found, AViewThatStartsToRequireGrad) {
  test::expect_same(plain, [](const Tensors& v) { return Tensors{v[0].chunk(2, 0)[1].requires_grad_()}; });
  test::expect_same(computed, [](const Tensors& v) {
    at::Tensor y = v[0] * 2, z;
    {
      at::NoGradGuard no_grad;
      z = y.t();
    }
    return Tensors{z, z.transpose(0, 1)};
  });
}

TEST(Found, AWrittenViewOfAnotherArgumentTakesWrites) {
  const test::Maker x = [] {
    test::Scene scene = test::non_leaves({{1, 2}}, {true})();
    scene.arguments.push_back(scene.arguments[0].alias());
    return scene;
  };
  test::compare([](const Tensors& v) { return Tensors{v[1].squeeze().mul_(0.5)}; }, x,
                {.differentiate_written = false, .together = false});
}

TEST(Found, AViewOfAnInputWithAHistoryOfItsOwnTakesWrites) {
  const test::Maker x = test::non_leaves({{1, 1}, {1, 1}}, {true, true});
  auto holds = [&](const Callable& body) {
    test::compare(body, x, {.compiled = false, .differentiate_written = false});
  };
  holds([](const Tensors& v) { return Tensors{v[0].unsqueeze(0).transpose_(2, -1)}; });
  holds([](const Tensors& v) { return Tensors{v[0].detach().mul_(2).add_(v[1]).expand_as(v[0])}; });
  holds([](const Tensors& v) {
    at::Tensor y = v[0].select(1, 0).slice(0, 0, 3);
    v[0].neg_();
    return Tensors{y.narrow(0, 0, 1)};
  });
}

TEST(Found, AViewMadeUnderNoGradOfADetachedTensorWithAHistory) {
  test::expect_same(test::leaves({{1, 1}, {1, 1}}, {true, true}), [](const Tensors& v) {
    at::Tensor y = v[0].detach().mul_(2).add_(v[1]);
    at::NoGradGuard no_grad;
    return Tensors{y.as_strided({1}, {1})};
  });
}

TEST(Found, OnlyALeafMadeInsideRequiresGrad) {
  Callable fn = [](const Tensors& v) {
    at::Tensor y = v[0].clone().requires_grad_();
    return Tensors{v[0] + y};
  };
  EXPECT_TRUE(Compiled(fn, {})({torch::randn({3})})[0].grad_fn() != nullptr);
}

TEST(Found, AViewFromAListWhoseBaseIsWritten) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::Tensor y = v[0].unbind(0)[1] * 2;
    at::NoGradGuard no_grad;
    v[0].mul_(2);
    return Tensors{y};
  });
}

TEST(Found, AListOfPartsOfOneTensor) {
  test::compare(
      [](const Tensors& v) {
        at::Tensor y = v[0] * 2;
        at::_foreach_mul_(y.unbind(0), 3);
        return Tensors{y};
      },
      plain);
}

TEST(Found, AWriteCountsForANeighbourThatIsSavedAfterwards) {
  const test::Maker rows = [] {
    test::Scene scene = test::non_leaves({{2, 3}}, {true})();
    scene.others = scene.arguments;
    scene.arguments = {scene.others[0].select(0, 0), scene.others[0].select(0, 1)};
    return scene;
  };
  test::compare(
      [](const Tensors& v) {
        v[0].mul_(2);
        return Tensors{v[1].sin()};
      },
      rows, {.together = false});
}

TEST(Found, AViewWhoseBaseIsDetachedInPlace) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::Tensor y = v[0].clone(), z = y.diagonal();
    y.exp_();
    y.detach_();
    return Tensors{y, z};
  });
}

TEST(Found, AViewOfALeafMadeInside) {
  Callable fn = [](const Tensors& v) { return Tensors{v[0].detach().sum().requires_grad_().view({-1, 1})}; };
  EXPECT_NE(test::message([&] { Compiled(fn, {})({test::leaf({3})})[0].mul_(2); }), "");
}

TEST(Found, AViewIsDetachedInPlace) {
  Callable fn = [](const Tensors& v) {
    v[0].detach_();
    return Tensors{v[0] * 2};
  };
  EXPECT_NE(test::message([&] { Compiled(fn, {})({torch::randn({4}).slice(0, 0, 2)}); }), "");
  EXPECT_EQ(test::message([&] { Compiled(fn, {})({torch::randn({4})}); }), "");
}

TEST(Found, ALeafIsDetachedAndGetsAHistory) {
  test::expect_same(matrix, [](const Tensors& v) {
    at::Tensor y = v[0].exp();
    v[0].detach_();
    v[0].addcmul_(v[0], y);
    return Tensors{at::atan2(v[0], v[0])};
  });
}

TEST(Found, ManyRandomNumbersIntoAnInputWithGaps) {
  test::expect_same([] { return test::Scene{{torch::randn({4, 8}).slice(-1, 0, 8, 2)}, {}, {}}; },
                    [](const Tensors& v) {
                      v[0].normal_();
                      return Tensors{v[0]};
                    });
}

TEST(Found, AnElementOfAListIsReadWhereItIsWritten) {
  test::expect_same([] { return test::Scene{{torch::randn({2, 2}).t()}, {}, {}}; },
                    [](const Tensors& v) {
                      at::Tensor y = v[0] + 0;
                      at::_foreach_add_({y, v[0]}, {v[0], v[0].chunk(2, 0)[0]});
                      return Tensors{y};
                    });
}

TEST(Found, AProductIntoMemoryWithGaps) {
  test::expect_same(
      [] { return test::Scene{{torch::randn({5, 5}), torch::randn({5, 10}).slice(-1, 0, 10, 2)}, {}, {}}; },
      [](const Tensors& v) {
        v[1].addmm_(v[0], v[0]);
        return Tensors{v[0]};
      });
}

TEST(Found, AResultThatIsResizedByItsKernel) {
  test::expect_same(test::leaves({{1, 1}}, {false}), [](const Tensors& v) {
    at::Tensor y = v[0], z = at::stack({y, y}, 0);
    return Tensors{at::matmul_out(y, y, z) * 2};
  });
}

TEST(Found, ACapturedTensorIsTransposedAndAskedForItsSizes) {
  at::Tensor eager = torch::randn({1, 2}), captured = eager.clone();
  auto program = [](at::Tensor& w) {
    return Callable([&w](const Tensors&) {
      w.t_();
      return Tensors{at::arange(w.size(0)) + w.size(1)};
    });
  };
  Compiled fast(program(captured), {});
  for (int call = 0; call < 3; ++call)
    EXPECT_TRUE(test::same_values(fast({})[0], program(eager)({})[0])) << call;
  EXPECT_EQ(captured.sizes(), eager.sizes());
}

TEST(Found, ACapturedTensorStartsToRequireGradAndIsAskedForAGradient) {
  auto program = [](at::Tensor& w) {
    return Callable([&w](const Tensors&) {
      at::add_out(w, w, w);
      w.requires_grad_();
      return Tensors{torch::autograd::grad({w.sum()}, {w})[0]};
    });
  };
  at::Tensor eager = torch::randn({2}), captured = eager.clone();
  Compiled fast(program(captured), {});
  EXPECT_TRUE(test::same_values(fast({})[0], program(eager)({})[0]));
  EXPECT_TRUE(at::equal(captured, eager) && captured.requires_grad());
}

TEST(Found, AResultIsResizedWhileAViewOfItIsRead) {
  test::expect_same(plain, [](const Tensors& v) {
    at::Tensor y = v[0].sum(), z = y.detach();
    return Tensors{at::add_out(y, z, v[1])};
  });
}

TEST(Found, ALeafThatIsAView) {
  const test::Maker x = [] {
    at::Tensor leaf = torch::randn({4}).slice(0, 0, 4, 2).requires_grad_();
    return test::Scene{{leaf}, {leaf}, {}};
  };
  test::expect_same(x, [](const Tensors& v) {
    at::Tensor y;
    {
      at::NoGradGuard no_grad;
      y = v[0].unsqueeze(1);
    }
    return Tensors{y.fill_(2)};
  });
  test::expect_same(x, [](const Tensors& v) {
    at::Tensor y = v[0].squeeze();
    at::NoGradGuard no_grad;
    v[0].add_(v[0]);
    return Tensors{y};
  });
  test::compare([](const Tensors& v) { return Tensors{v[0].unsqueeze(1) * 2}; }, x);
}

TEST(Found, ViewsOfOneTensorAreMadeInTheOrderOfTheProgram) {
  auto program = [](const Tensors& in) {
    at::Tensor y = in[0].exp(), narrow = y.narrow(0, 0, 1), transposed = y.t();
    return Tensors{transposed, narrow.slice(0, 0, 3)};
  };
  auto numbers_of = [&](const auto& call) {
    const Tensors out = call({torch::randn({2, 2}).requires_grad_()});
    const auto slice = out[1].grad_fn(), narrow = slice->next_edge(0).function;
    return std::vector<bool>{narrow->sequence_nr() < out[0].grad_fn()->sequence_nr(),
                             out[0].grad_fn()->sequence_nr() < slice->sequence_nr()};
  };
  EXPECT_EQ(numbers_of(program), (std::vector<bool>{true, true}));
  EXPECT_EQ(numbers_of(Compiled(program, {})), (std::vector<bool>{true, true}));
}

TEST(Found, ACapturedTensorComesBackFromAnOperatorAndIsAskedForAGradient) {
  const at::Tensor captured = torch::randn({2}).requires_grad_();
  auto program = [&](const Tensors& in) {
    return Tensors{torch::autograd::grad({in[0].sum()}, {captured.to(at::kFloat)}, {}, true, false,
                                         /*allow_unused=*/true)[0]};
  };
  EXPECT_TRUE(test::same_values(Compiled(program, {})({captured.slice(0, 1)})[0],
                                program({captured.slice(0, 1)})[0]));
}

TEST(Found, AnIndexOfAnotherDtypeIsRefusedThoughItsResultIsOverwritten) {
  auto program = [](const Tensors& in) { return Tensors{at::index_select(in[0], 0, in[0]).copy_(in[0])}; };
  EXPECT_NE(test::message([&] { program({torch::randn({})}); }), "");
  EXPECT_NE(test::message([&] { Compiled(program, {})({torch::randn({})}); }), "");
}

TEST(Found, ACaptureThatStartsToRequireGradBesideAViewOfIt) {
  at::Tensor captured = torch::randn({}), view = captured.reshape({-1});
  Compiled fast(
      [&](const Tensors&) {
        captured.sin_();
        return Tensors{captured.requires_grad_()};
      },
      {});
  fast.explain({view});
  EXPECT_FALSE(captured.requires_grad());
  const at::Tensor want = captured.sin();
  EXPECT_TRUE(at::equal(fast({view})[0].detach(), want));
  EXPECT_TRUE(captured.requires_grad());
}

// The second call refuses the gradient of what it wrote, which the first call leads to; a capture that the
// first call only looks at must not be behind that.
TEST(Found, ACallLeadsOnlyToWhatItsOutputsDependOn) {
  for (bool compiled : {false, true}) {
    at::Tensor written = torch::randn({}), looked_at = test::leaf({2});
    const Callable program = [&](const Tensors& in) {
      at::Tensor y = written.exp_();
      looked_at.slice(0, 1);
      written.add_(in[0]);
      return Tensors{y};
    };
    Compiled fast(program, {});
    for (int call = 0; call < 2; ++call) {
      const at::Tensor x = test::leaf({}), out = compiled ? fast({x.clone()})[0] : program({x.clone()})[0];
      const Tensors gradients =
          torch::autograd::grad({out}, {x, looked_at}, {}, true, false, /*allow_unused=*/true);
      EXPECT_EQ(gradients[0].item<float>(), 1);
      EXPECT_FALSE(gradients[1].defined());
    }
  }
}

/// A custom function that gives its input back, with a gradient of its own.
struct Triple : torch::autograd::Function<Triple> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.variable_data();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * 3};
  }
};

TEST(Found, AnOutputThatIsAnInputWithAHistoryOfItsOwn) {
  auto program = [](const Tensors& in) { return Tensors{Triple::apply(in[0])}; };
  const at::Tensor x = test::leaf({2}), out = Compiled(program, {})({x})[0];
  ASSERT_NE(out.grad_fn(), nullptr);
  EXPECT_TRUE(at::equal(torch::autograd::grad({out.sum()}, {x})[0], at::full({2}, 3.0, x.options())));
}

// The draw went into the very memory that the write before it had read.
TEST(Found, ARandomWriteToWhatAWriteHasRead) {
  const Callable program = [](const Tensors& in) {
    at::Tensor factor = at::scalar_tensor(3.0);
    in[0].normal_();
    at::Tensor y = in[0].detach().mul_(2).mul_(factor);
    factor.bernoulli_(0.5);
    return Tensors{y, factor};
  };
  const Compiled fast(program, {.backend = "eager", .must_compile = true, .cache = {.enabled = false}});
  auto seen = [](const Callable& f) {
    torch::manual_seed(7);
    const at::Tensor x = test::leaf({}).clone();
    Tensors out = f({x});
    out.insert(out.end(), {x.detach(), torch::rand({})});
    return out;
  };
  const Tensors want = seen(program), got = seen([&](const Tensors& in) { return fast(in); });
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << i;
}

}  // namespace
}  // namespace tandem
