#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/affine_dot.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "engine/passes/layout/read_windows.h"
#include "engine/reference/evaluator.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord {
namespace {

using Builder = StaticGraphBuilder;
using Ints = std::vector<int64_t>;

int64_t Below(int64_t n, std::mt19937_64* random) {
  return static_cast<int64_t>((*random)() % static_cast<uint64_t>(n));
}

// A product of an image by weights, of which windows are moved and added up.
struct SumCase {
  Ints image;           // sizes of its axes
  Ints taps, dilation;  // by axis of the image
  Ints crop;            // by axis: of both ends of the sum
  int64_t channels = 1, kept = 1, batch = 1;
  bool weights_first = false;  // the product's lhs
  bool taps_first = false;     // in the axis of taps and kept channels
  bool is_merged = false;      // the image is one axis of the product
  bool leaves_product = false;
  bool is_shuffled = false;
  bool shrinks = false;  // adds up parts of windows that overlap everywhere, instead of windows with padding
};

SumCase RandomSum(std::mt19937_64* random) {
  SumCase c;
  for (int64_t axes = 1 + Below(2, random); axes > 0; --axes) {
    c.taps.push_back(1 + Below(3, random));
    c.dilation.push_back(1 + Below(2, random));
    c.image.push_back(4 + Below(3, random));
    c.crop.push_back(Below(2, random));
  }
  if (std::all_of(c.taps.begin(), c.taps.end(), [](int64_t taps) { return taps == 1; })) c.taps[0] = 3;
  c.channels = 1 + Below(3, random);
  c.kept = 1 + Below(3, random);
  c.batch = 1 + Below(2, random);
  const auto coin = [&] { return Below(2, random) == 0; };
  c.weights_first = coin();
  c.taps_first = coin();
  c.is_merged = coin();
  c.is_shuffled = coin();
  c.shrinks = coin() && coin();
  return c;
}

// Axes of windows: those of the image, kept channels, batch.
Graph GraphOf(const SumCase& c, std::mt19937_64* random) {
  Builder g("windows");
  const int64_t taps = std::accumulate(c.taps.begin(), c.taps.end(), int64_t{1}, std::multiplies<>());
  const int64_t pixels = std::accumulate(c.image.begin(), c.image.end(), int64_t{1}, std::multiplies<>());
  Shape x_shape(c.image.begin(), c.image.end());
  const int64_t axes = static_cast<int64_t>(c.image.size());
  x_shape.insert(x_shape.end(), {c.channels, c.batch});
  const Shape matrix = {pixels, c.channels, c.batch};
  const ValueId image = g.Input("x", DType::kF32, x_shape), w = g.Input("w", DType::kF32, {taps * c.kept, c.channels});
  const ValueId x = c.is_merged ? g.Reshape(image, matrix) : image;
  const int64_t channel_axis = c.is_merged ? 1 : axes;
  ValueId product = c.weights_first ? g.Dot(w, x, {1}, {channel_axis}) : g.Dot(x, w, {channel_axis}, {1});
  if (c.leaves_product) g.Output("product", product);
  // To pixels, taps and channels, batch.
  Ints order;
  const int64_t of_image = c.is_merged ? 1 : axes;
  for (int64_t a = 0; a < of_image; ++a) order.push_back(c.weights_first ? a + 1 : a);
  order.push_back(c.weights_first ? 0 : of_image + 1);
  order.push_back(c.weights_first ? of_image + 1 : of_image);
  product = g.Transpose(product, order);
  Shape apart(c.image.begin(), c.image.end());
  apart.insert(apart.end(), {c.taps_first ? taps : c.kept, c.taps_first ? c.kept : taps, c.batch});
  product = g.Reshape(product, apart);

  std::vector<ValueId> windows;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const size_t rank = apart.size();
    Ints starts(rank), limits(apart.begin(), apart.end());
    const size_t tap_axis = static_cast<size_t>(c.taps_first ? axes : axes + 1);
    starts[tap_axis] = tap;
    limits[tap_axis] = tap + 1;
    Ints low(rank - 1), high(rank - 1);
    int64_t rest = tap;
    for (size_t a = 0; a < c.image.size(); ++a) {
      const int64_t reach = (c.taps[a] - 1) * c.dilation[a], place = rest % c.taps[a] * c.dilation[a];
      rest /= c.taps[a];
      low[a] = place;
      high[a] = reach - place;
      if (c.shrinks) {
        starts[a] = std::min(place, c.image[a] - 1);
        limits[a] = std::max(starts[a] + 1, c.image[a] - reach + place);
      }
    }
    ValueId window = g.Slice(product, starts, limits);
    Shape shape = g.ShapeOf(window);
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(tap_axis));
    window = g.Reshape(window, shape);
    windows.push_back(c.shrinks ? window : g.Pad(window, 0, low, high));
  }
  if (c.is_shuffled) std::shuffle(windows.begin(), windows.end(), *random);
  while (windows.size() > 1) {
    const size_t at = static_cast<size_t>(Below(static_cast<int64_t>(windows.size()) - 1, random));
    windows[at] = g.Binary(CoreOp::kAdd, windows[at], windows[at + 1]);
    windows.erase(windows.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  ValueId sum = windows[0];
  if (std::any_of(c.crop.begin(), c.crop.end(), [](int64_t crop) { return crop > 0; }) && !c.shrinks) {
    Ints ends(g.ShapeOf(sum).size());
    for (size_t a = 0; a < c.crop.size(); ++a) ends[a] = -c.crop[a];
    sum = g.Pad(sum, 0, ends, ends);
  }
  g.Output("y", sum);
  return g.Take();
}

int Count(const Graph& graph, CoreOp op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [op](const Node& node) { return Is(*node.op, op); }));
}

// Returns the graph after the pass, which must compute the same.
Graph Rewritten(const Graph& graph, std::mt19937_64* random) {
  Graph rewritten = graph;
  EXPECT_TRUE(ReadWindows(&rewritten, {.fuses = true}).ok());
  EXPECT_TRUE(EliminateDeadCode(&rewritten, {}).ok());
  EXPECT_TRUE(VerifyTypes(rewritten).ok()) << VerifyTypes(rewritten) << PrintGraph(graph) << PrintGraph(rewritten);
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kIntegers, random));
  }
  const auto wanted = EvaluateReference(graph, {}, arguments), got = EvaluateReference(rewritten, {}, arguments);
  EXPECT_TRUE(wanted.ok() && got.ok()) << wanted.status() << got.status();
  for (size_t i = 0; i < wanted->size(); ++i) {
    EXPECT_EQ((*got)[i].bytes(), (*wanted)[i].bytes()) << PrintGraph(graph) << PrintGraph(rewritten);
  }
  return rewritten;
}

TEST(WindowSums, ComputeWhatTheirWindowsDid) {
  std::mt19937_64 random(39);
  int sums = 0;
  for (int i = 0; i < 600; ++i) {
    const SumCase c = RandomSum(&random);
    const Graph graph = GraphOf(c, &random);
    const Graph rewritten = Rewritten(graph, &random);
    if (HasFailure()) return;
    if (c.shrinks) continue;  // an image may be too small for its windows
    ++sums;
    EXPECT_EQ(Count(rewritten, CoreOp::kAdd), 0) << PrintGraph(graph) << PrintGraph(rewritten);
    EXPECT_EQ(Count(rewritten, CoreOp::kPad), 0) << PrintGraph(graph) << PrintGraph(rewritten);
  }
  EXPECT_GT(sums, 300);
}

SumCase OneRow() { return {.image = {6}, .taps = {3}, .dilation = {1}, .crop = {1}, .channels = 2, .kept = 2}; }

TEST(WindowSums, WhatOthersReadStays) {
  std::mt19937_64 random(1);
  SumCase c = OneRow();
  c.leaves_product = true;
  EXPECT_EQ(Count(Rewritten(GraphOf(c, &random), &random), CoreOp::kAdd), 2);
  c.leaves_product = false;
  EXPECT_EQ(Count(Rewritten(GraphOf(c, &random), &random), CoreOp::kAdd), 0);
}

// Frames that hardly overlap: each result would be a sum over all frames, of which most are padding.
TEST(WindowSums, WindowsFarApartStay) {
  constexpr int64_t kFrames = 32, kLength = 100, kHop = 90, kBank = 64;
  std::mt19937_64 random(4);
  Builder g("frames");
  const ValueId frames = g.Input("frames", DType::kF32, {kFrames, kBank});
  const ValueId parts = g.Dot(g.Input("w", DType::kF32, {kLength, kBank}), frames, {1}, {1});
  ValueId sum = {};
  for (int64_t i = 0; i < kFrames; ++i) {
    const ValueId part = g.Slice(parts, {0, i}, {kLength, i + 1});
    const ValueId padded = g.Pad(part, 0, {i * kHop, 0}, {(kFrames - 1 - i) * kHop, 0});
    sum = i == 0 ? padded : g.Binary(CoreOp::kAdd, sum, padded);
  }
  g.Output("signal", sum);
  EXPECT_EQ(Count(Rewritten(g.Take(), &random), CoreOp::kAdd), kFrames - 1);
}

// x with every window of it once more is no lattice.
TEST(WindowSums, WindowsThatLieUnevenlyStay) {
  std::mt19937_64 random(2);
  Builder g("uneven");
  const ValueId x = g.Input("x", DType::kF32, {8, 2}), w = g.Input("w", DType::kF32, {3, 2});
  const ValueId product = g.Dot(x, w, {1}, {1});
  const auto window = [&](int64_t tap, int64_t place) {
    return g.Pad(g.Slice(product, {0, tap}, {8, tap + 1}), 0, {place, 0}, {4 - place, 0});
  };
  g.Output("y", g.Binary(CoreOp::kAdd, g.Binary(CoreOp::kAdd, window(0, 0), window(1, 1)), window(2, 4)));
  EXPECT_EQ(Count(Rewritten(g.Take(), &random), CoreOp::kAdd), 2);
}

// Halves of a product that are added up in their place are no windows: it would only sum over more terms.
TEST(WindowSums, PartsThatDoNotMoveStay) {
  std::mt19937_64 random(3);
  Builder g("halves");
  const ValueId x = g.Input("x", DType::kF32, {8, 2}), w = g.Input("w", DType::kF32, {6, 2});
  const ValueId product = g.Dot(x, w, {1}, {1});
  g.Output("y", g.Binary(CoreOp::kAdd, g.Slice(product, {0, 0}, {8, 3}), g.Slice(product, {0, 3}, {8, 6})));
  EXPECT_EQ(Count(Rewritten(g.Take(), &random), CoreOp::kAdd), 1);
}

}  // namespace
}  // namespace tensord
