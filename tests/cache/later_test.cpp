// Of a hit the backwards stay packed until one is asked for, and are looked at no less carefully then.
#include <thread>

#include "cache/local_store.h"
#include "cache/processes.h"
#include "cache/record.h"

namespace tandem::test {
namespace {

class Later : public Processes {
 protected:
  /// Changes what the folder has of the one function that was compiled, behind its checksum.
  template <class Change>
  void change_entry(const Change& change) {
    cache::LocalStore store(directory(), "", uint64_t(1) << 30);
    const std::string key = files("entries").at(0).filename();
    cache::StoredEntry entry = cache::decode_for_call(store.get(cache::Kind::Entry, key).payload);
    change(entry.first);
    store.put(cache::Kind::Entry, key, cache::encode(entry));
    next_process();
  }
};

const Callable wave = [](const Tensors& in) { return Tensors{in[0].sin() * in[1].exp()}; };
Tensors wave_inputs() { return {leaf({1, 2}), leaf({0.5, 0.25})}; }

void damage_backwards(cache::StoredOrder& first) {
  ASSERT_FALSE(first.packed.bytes.empty());
  first.packed.bytes.resize(first.packed.bytes.size() / 2);
}

TEST_F(Later, ABackwardThatCannotBeReadIsRecordedAgain) {
  const Tensors inputs = wave_inputs();
  train(Compiled(wave, options()), inputs);
  change_entry(damage_backwards);
  const Compiled loaded(wave, options());
  expect_same(loaded(inputs), wave(inputs));
  EXPECT_COUNTERS(1u, 0u, 0u);
  EXPECT_EQ(counter("cache_unfit") + counter("joint_trace"), 0u) << "nobody asked for a backward yet";
  expect_same(train(loaded, inputs), train(wave, inputs));
  EXPECT_EQ(counter("cache_unfit"), 1u);
  EXPECT_COUNTERS(1u, 0u, 1u);
  next_process();
  expect_same(train(Compiled(wave, strict()), inputs), train(wave, inputs));
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
}

TEST_F(Later, InStrictModeSuchABackwardIsAnError) {
  const Tensors inputs = wave_inputs();
  train(Compiled(wave, options()), inputs);
  change_entry(damage_backwards);
  const Compiled loaded(wave, strict());
  EXPECT_TRUE(contains(message<CacheError>([&] { train(loaded, inputs); }), "cannot be used"));
}

TEST_F(Later, AJointGraphThatCannotBeReadIsRecordedAgain) {
  const Tensors inputs = wave_inputs();
  train(Compiled(wave, options()), inputs);
  change_entry([](cache::StoredOrder& first) { first.joint.bytes = "nonsense"; });
  const Compiled loaded(wave, options());
  auto grad = [&](const Callable& fn) { return torch::autograd::grad({fn(inputs)[0].sum()}, {inputs[1]}); };
  expect_same(grad([&](const Tensors& in) { return loaded(in); }), grad(wave));
  EXPECT_EQ(counter("cache_unfit"), 1u);
  next_process();
  expect_same(train(Compiled(wave, strict()), inputs), train(wave, inputs));
  EXPECT_COUNTERS(1u, 0u, 0u);
}

TEST_F(Later, FirstBackwardsOfManyThreadsFindTheSameCode) {
  train(Compiled(wave, options()), wave_inputs());
  next_process();
  const Compiled loaded(wave, strict());
  loaded(wave_inputs());
  std::vector<std::thread> threads;
  std::vector<Tensors> found(8);
  for (Tensors& gradients : found) threads.emplace_back([&] { gradients = train(loaded, wave_inputs()); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensors& gradients : found) expect_same(gradients, train(wave, wave_inputs()));
  EXPECT_COUNTERS(1u, 0u, 0u);
  expect_only_traced();
}

}  // namespace
}  // namespace tandem::test
