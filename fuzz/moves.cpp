#include "fuzz/moves.h"

#include <ATen/ATen.h>

#include "fuzz/shaken_operators.h"
#include "fuzz/tolerance.h"

namespace tandem::fuzz {

std::vector<at::Tensor> moves_of(const std::vector<at::Tensor>& seen,
                                 const std::function<std::vector<at::Tensor>()>& eager) {
  std::vector<at::Tensor> moves(seen.size());
  const auto plain = [](const at::Tensor& t) { return t.detach().resolve_conj().resolve_neg(); };
  constexpr uint64_t times = 8, apart = 1001;
  for (uint64_t k = 1; k <= times; ++k) {
    const ShakenOperators otherwise(k * apart);
    const std::vector<at::Tensor> shaken = eager();
    for (size_t i = 0; i < std::min(seen.size(), shaken.size()); ++i)
      if (seen[i].defined() && shaken[i].defined() && seen[i].sizes() == shaken[i].sizes())
        note_moves(moves[i], plain(seen[i]), plain(shaken[i]));
  }
  return moves;
}

}  // namespace tandem::fuzz
