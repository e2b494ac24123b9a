#include "shapes/meta_kernel.h"

#include <array>

namespace tandem {
namespace {

// An operator keeps every kernel that was ever registered, newest first, and shows only the newest. An
// explicit instantiation may name what is private: these two are how the older ones are reached.
struct DefinitionOf {
  friend auto member(DefinitionOf);
};
struct KernelsOf {
  friend auto member(KernelsOf);
};
template <auto Member, class Tag>
struct Expose {
  friend auto member(Tag) { return Member; }
};
template struct Expose<&c10::OperatorHandle::operatorDef_, DefinitionOf>;
template struct Expose<&c10::impl::OperatorEntry::kernels_, KernelsOf>;

bool is_from_python(const c10::impl::AnnotatedKernel& kernel) {
  return kernel.debug.find(".py:") != std::string::npos;
}

/// In the order in which the dispatcher looks.
constexpr std::array sources = {
    c10::DispatchKey::Meta, c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
    c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::CompositeImplicitAutograd};

}  // namespace

bool host_has_meta_kernels() {
  static const bool found = [] {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
    const auto& kernels = (op.*member(DefinitionOf()))->op.*member(KernelsOf());
    auto registered = kernels.find(c10::DispatchKey::Meta);
    return registered != kernels.end() && is_from_python(registered->second.front());
  }();
  return found;
}

std::optional<MetaKernel> find_meta_kernel(const c10::OperatorHandle& op) {
  const bool is_ours_alone = op.operator_name().getNamespace() == "aten";
  const auto& kernels = (op.*member(DefinitionOf()))->op.*member(KernelsOf());
  for (c10::DispatchKey source : sources) {
    if (source != c10::DispatchKey::Meta && !c10::isIncludedInAlias(c10::DispatchKey::Meta, source)) continue;
    auto registered = kernels.find(source);
    if (registered == kernels.end()) continue;
    for (const c10::impl::AnnotatedKernel& kernel : registered->second) {
      if (is_ours_alone && is_from_python(kernel)) continue;
      if (kernel.kernel.isValid() && !kernel.kernel.isFallthrough())
        return MetaKernel{kernel.kernel, source != c10::DispatchKey::Meta};
    }
  }
  return std::nullopt;
}

}  // namespace tandem
