// Rates of devices, and the seconds that they come to.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "partition/cost_model.h"
#include "partition/halves.h"

namespace tandem {

TEST(Rates, AreReadBackAsTheyWereWritten) {
  const Rates rates = *rates_of_words("-77 133 124 143 -400");
  EXPECT_DOUBLE_EQ(rates.call_seconds, std::exp2(-19.25));
  EXPECT_DOUBLE_EQ(rates.narrow_flops, std::exp2(-100));
  EXPECT_EQ(to_words(rates), "-77 133 124 143 -400");
}

TEST(Rates, AreFiveNumbersAndNothingElse) {
  for (const char* words : {"", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 5 ", " 1 2 3 4 5", "1  2 3 4 5",
                            "1 2 3 4 x", "1 2 3 4 401", "1 2 3 4 5.5", "1 2 3 4 99999999999999999999"})
    EXPECT_FALSE(rates_of_words(words)) << words;
}

TEST(Rates, AreMeasuredAsWholeQuarters) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // which others on the machine do not keep from being measured
  const Rates measured = measure_rates(c10::kCPU);
  at::set_num_threads(threads);
  EXPECT_EQ(to_words(*rates_of_words(to_words(measured))), to_words(measured));
  EXPECT_DOUBLE_EQ(rates_of_words(to_words(measured))->bytes, measured.bytes);
}

TEST(Rates, MakeASlowDeviceSlow) {
  GraphWriter w;
  const Value x = w.input({1000});
  const Node node = w.node("aten::add.Tensor", {x, x});
  const Rates slow{1, 1e3, 1e3, 1, 1}, fast{1e-9, 1e12, 1e12, 1e12, 1e12};
  const CostModel slowly = cost_model_with({{c10::kCPU, slow}}, "test"),
                  quickly = cost_model_with({{c10::kCPU, fast}}, "test");
  EXPECT_DOUBLE_EQ(slowly(w.graph, node), 1 + 3 * 1000 * 8 / 1e3);
  EXPECT_LT(quickly(w.graph, node), 1e-6);
  EXPECT_NE(slowly.version, quickly.version);
  EXPECT_EQ(cost_model_with({{c10::Device(c10::kCUDA, 0), slow}}, "test")(w.graph, node),
            built_in_cost_model()(w.graph, node))
      << "of a device that is not named";
}

}  // namespace tandem
