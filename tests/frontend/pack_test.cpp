#include <tandem/pack.h>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace {

using tandem::Pack;
using tandem::Reader;
using tandem::Writer;

template <class T>
T through(const T& value) {
  Writer writer;
  writer.write(value);
  return Reader(writer.tensors, writer.rest).read<T>();
}

template <class T>
std::string rest_of(const T& value) {
  Writer writer;
  writer.write(value);
  return writer.rest;
}

enum class Colour { Red, Blue };

TEST(Pack, NumbersStringsAndEnumsComeBack) {
  EXPECT_EQ(through(3), 3);
  EXPECT_EQ(through(2.5), 2.5);
  EXPECT_EQ(through(true), true);
  EXPECT_EQ(through(Colour::Blue), Colour::Blue);
  EXPECT_EQ(through(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(through(at::kDouble), at::kDouble);
  EXPECT_EQ(through(c10::Device("cuda:1")), c10::Device("cuda:1"));
  EXPECT_EQ(through(std::complex<double>(1, 2)), std::complex<double>(1, 2));
  EXPECT_EQ(through(c10::Scalar(2.5)).toDouble(), 2.5);
  EXPECT_TRUE(through(c10::Scalar(true)).isBoolean());
  EXPECT_EQ(through(c10::Scalar(7)).toLong(), 7);
  EXPECT_EQ(through(c10::Scalar(c10::complex<double>(1, 2))).toComplexDouble(), c10::complex<double>(1, 2));
}

TEST(Pack, ContainersNestToAnyDepth) {
  using Nested =
      std::map<std::string,
               std::vector<std::tuple<int, std::optional<std::pair<std::string, std::array<double, 2>>>>>>;
  Nested value{{"a", {{1, std::nullopt}, {2, {{"x", {0.5, 1.5}}}}}}, {"b", {}}};
  EXPECT_EQ(through(value), value);
  EXPECT_EQ(through(std::vector<bool>{true, false, true}), (std::vector<bool>{true, false, true}));
}

TEST(Pack, TensorsAreListedInOrderAndNamedByTheirPlace) {
  at::Tensor a = torch::ones(1), b = torch::ones(2), c = torch::ones(3);
  std::vector<std::string> names;
  Writer writer;
  writer.names = &names;
  writer.path = "batch";
  writer.write(
      std::make_tuple(a, std::map<std::string, std::vector<at::Tensor>>{{"left", {b}}, {"right", {c}}}));
  ASSERT_EQ(writer.tensors.size(), 3u);
  EXPECT_TRUE(writer.tensors[0].is_same(a) && writer.tensors[1].is_same(b) && writer.tensors[2].is_same(c));
  EXPECT_EQ(names, (std::vector<std::string>{"batch[0]", "batch[1].left[0]", "batch[1].right[0]"}));
}

TEST(Pack, TensorsThemselvesLeaveNoTraceInTheRest) {
  EXPECT_TRUE(rest_of(std::make_tuple(torch::ones(1), torch::ones(2))).empty());
}

TEST(Pack, DifferentStructuresDifferInTheRest) {
  at::Tensor t = torch::ones(1);
  EXPECT_NE(rest_of(std::vector{t}), rest_of(std::vector{t, t}));
  EXPECT_NE(rest_of(std::optional(t)), rest_of(std::optional<at::Tensor>()));
  EXPECT_NE(rest_of(std::vector<std::string>{"ab", "c"}), rest_of(std::vector<std::string>{"a", "bc"}));
  EXPECT_NE(rest_of(std::map<std::string, at::Tensor>{{"a", t}}),
            rest_of(std::map<std::string, at::Tensor>{{"b", t}}));
}

TEST(Pack, OrderedDictKeepsItsOrder) {
  torch::OrderedDict<std::string, at::Tensor> dict;
  dict.insert("z", torch::ones(1));
  dict.insert("a", torch::ones(2));
  auto back = through(dict);
  EXPECT_EQ(back.keys(), (std::vector<std::string>{"z", "a"}));
  EXPECT_TRUE(back["a"].is_same(dict["a"]));
}

TEST(Pack, ViewsOfArraysReferToTheReader) {
  std::vector<int64_t> sizes{4, 5, 6};
  Writer writer;
  writer.write(at::IntArrayRef(sizes));
  writer.write(at::OptionalIntArrayRef(sizes));
  writer.write(at::OptionalIntArrayRef());
  writer.write(std::string_view("mean"));
  Reader reader(writer.tensors, writer.rest);
  sizes = {0, 0, 0};
  EXPECT_EQ(reader.read<at::IntArrayRef>().vec(), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(reader.read<at::OptionalIntArrayRef>()->vec(), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_FALSE(reader.read<at::OptionalIntArrayRef>().has_value());
  EXPECT_EQ(reader.read<std::string_view>(), "mean");
}

TEST(Pack, OptionVariantsKeepTheirAlternative) {
  using Reduction = std::variant<torch::enumtype::kNone, torch::enumtype::kMean, torch::enumtype::kSum>;
  Reduction sum = torch::kSum;
  EXPECT_EQ(through(sum).index(), 2u);
  EXPECT_NE(rest_of(sum), rest_of(Reduction(torch::kMean)));
}

struct Batch {
  at::Tensor data;
  int length = 0;
};

}  // namespace

template <>
struct tandem::Pack<Batch> {
  static void write(const Batch& batch, Writer& to) {
    to.write_part(std::string("data"), batch.data);
    to.write(batch.length);
  }
  static Batch read(Reader& from) {
    at::Tensor data = from.read<at::Tensor>();
    return {data, from.read<int>()};
  }
};

namespace {

TEST(Pack, AUsersTypeCanSayHowItIsTakenApart) {
  Batch batch{torch::ones(2), 7};
  auto back = through(std::vector<Batch>{batch});
  EXPECT_TRUE(back[0].data.is_same(batch.data));
  EXPECT_EQ(back[0].length, 7);
}

}  // namespace
