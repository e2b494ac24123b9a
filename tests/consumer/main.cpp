// Trains one step eagerly and one compiled; succeeds when loss, gradient and the new weights are equal bit
// for bit, an error says where it comes from, and what the user adds works.
#include <ATen/ATen.h>
#include <tandem/tandem.h>

#include <cstdio>
#include <cstring>

bool extends_the_library();

at::Tensor scale_by_sum(at::Tensor x) { return x * x.sum().item<double>(); }

/// Built without debug information, it has the name of the function alone to say where.
bool names_the_function() {
  try {
    tandem::compile(scale_by_sum, {.must_compile = true})(at::ones({2}));
  } catch (const tandem::Error& error) {
    return std::strstr(error.what(), "scale_by_sum");
  }
  return false;
}

int main() {
  at::manual_seed(1);
  at::Tensor x = at::randn({8, 4}), y = at::randn({8, 2}), start = at::randn({4, 2});
  at::Tensor eager = start.clone().requires_grad_(), compiled = start.clone().requires_grad_();
  auto loss = [](at::Tensor x, at::Tensor y, at::Tensor w) { return (x.mm(w).tanh() - y).square().mean(); };
  auto fast = tandem::compile(loss);

  at::Tensor eager_loss = loss(x, y, eager), compiled_loss = fast(x, y, compiled);
  eager_loss.backward();
  compiled_loss.backward();
  for (at::Tensor* weight : {&eager, &compiled}) weight->data().sub_(weight->grad(), 0.1);

  bool equal = at::equal(eager_loss, compiled_loss) && at::equal(eager.grad(), compiled.grad()) &&
               at::equal(eager, compiled) && !at::equal(compiled, start);
  bool was_compiled = tandem::counters().at("compile_backward") == 1;
  std::printf("loss %.6f, %s\n", compiled_loss.item<double>(),
              !equal         ? "differs from eager"
              : was_compiled ? "equal to eager"
                             : "not compiled");
  const bool named = names_the_function();
  if (!named) std::printf("an error does not name the function that it comes from\n");
  return equal && was_compiled && named && extends_the_library() ? 0 : 1;
}
