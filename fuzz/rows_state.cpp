#include "fuzz/row.h"
#include "fuzz/state.h"

namespace tandem::fuzz {

std::vector<Row> state_rows() {
  return {
      ROW(State, 3, 1, "n", fuzz::carry(i[0], t[0])),
      ROW(State, 2, 1, "n", fuzz::add_noise_made_once(i[0], t[0])),
      ROW(State, 1, 1, "", fuzz::add_length_of_history(t[0])),
      ROW(Effect, 2, 1, "n", fuzz::add_noise_of_seed(i[0], t[0])),
      ROW(Effect, 1, 1, "", fuzz::multiply_noise_twice(t[0])),
      ROW(Effect, 2, 1, "", fuzz::add_gradient(t[0])),
      VOID_ROW(Effect, 1, 1, "", fuzz::set_gradient(t[0])),
      VOID_ROW(Effect, 1, 1, "", fuzz::clear_gradient(t[0])),
      ROW(Hook, 1, 1, "n", fuzz::hooked(i[0], t[0])),
      ROW(Custom, 2, 2, "", fuzz::custom_product(t[0], t[1])),
      ROW(Custom, 1, 1, "n", fuzz::custom_scaled(i[0], t[0])),
  };
}

}  // namespace tandem::fuzz
