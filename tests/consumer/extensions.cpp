// What a user's own code adds to the library and gets from it: a backend, a custom autograd function, a class
// that is taken apart, and errors, which are told apart by their types.
#include <tandem/tandem.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdio>

/// A class whose insides are its own.
class Scaled {
 public:
  Scaled(at::Tensor tensor, double scale) : tensor_(std::move(tensor)), scale_(scale) {}
  at::Tensor value() const { return tensor_ * scale_; }

 private:
  friend struct tandem::Pack<Scaled>;
  at::Tensor tensor_;
  double scale_;
};

template <>
struct tandem::Pack<Scaled> {
  static void write(const Scaled& value, Writer& to) {
    to.write(value.tensor_);
    to.write(value.scale_);
  }
  static Scaled read(Reader& from) {
    auto tensor = from.read<at::Tensor>();
    return {tensor, from.read<double>()};
  }
};

namespace {

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * 3 * x * x};
  }
};

class Counting : public tandem::Backend {
 public:
  std::string name() const override { return "counting"; }
  std::string version() const override { return "1"; }
  std::shared_ptr<tandem::Executable> compile(const tandem::Graph& graph,
                                              const tandem::CompileContext&) override {
    ++compiled;
    return tandem::boxed([graph](tandem::Tensors&& inputs) { return graph.run(std::move(inputs)); });
  }
  int compiled = 0;
};

bool says(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

bool runs_on_a_backend_of_its_own() {
  auto backend = std::make_shared<Counting>();
  tandem::register_backend(backend);
  tandem::register_function<Cube>("1");
  auto cube = [](const Scaled& x) { return Cube::apply(x.value()).sum(); };
  at::Tensor x = at::randn({3}), eager = x.clone().requires_grad_(), compiled = x.clone().requires_grad_();
  cube(Scaled(eager, 2)).backward();
  tandem::compile(cube, {.backend = "counting", .must_compile = true})(Scaled(compiled, 2)).backward();
  return says(at::equal(eager.grad(), compiled.grad()), "the gradient") &&
         says(backend->compiled == 2, "how often the backend was asked") &&
         says(std::dynamic_pointer_cast<Counting>(tandem::find_backend("counting")) == backend,
              "the backend that is found");
}

template <class Expected, class F>
bool throws(F f) {
  try {
    f();
  } catch (const Expected&) {
    return true;
  } catch (const std::exception&) {
  }
  return false;
}

bool catches_errors_by_type() {
  auto reads = [](at::Tensor x) { return x * x.item<double>(); };
  auto compiled = tandem::compile(reads, {.must_compile = true});
  auto exported = tandem::export_forward([](at::Tensor x) { return x.sin(); }, {at::ones({2})});
  return says(throws<tandem::UnsupportedError>([&] { compiled(at::ones({})); }), "what cannot be compiled") &&
         says(throws<tandem::ContractError>([&] { exported({at::ones({3})}); }), "another shape") &&
         says(throws<tandem::Error>([] { tandem::find_backend("no such"); }), "an unknown backend");
}

}  // namespace

bool extends_the_library() { return runs_on_a_backend_of_its_own() && catches_errors_by_type(); }
