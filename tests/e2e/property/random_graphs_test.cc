// Random graphs over all ops and dtypes, sent to a composed server and run there, against the reference evaluator:
// within the bounds of tests/testlib/property/reference_bounds.h, bit for bit wherever the contract leaves nothing
// open. There is a server for every setting of the matrix, and the graphs go to each in turn.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs, TENSORD_SETTINGS=TEXT the settings
// whose names hold that text. A failure is made small and printed.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <iostream>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/exec/program/program_passes.h"
#include "engine/ir/verifier.h"
#include "tests/e2e/property/wire_run.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/property/growth_rules.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/property/shrinker.h"
#include "tests/testlib/runs/settings_matrix.h"

namespace tensord::property {
namespace {

constexpr SeedRange kDefaultSeeds = {.first = 20'000'000, .count = 20'000};
constexpr int kClients = 3;
constexpr absl::Duration kShrinkTime = absl::Seconds(60);

WireOptions RandomOptions(uint64_t seed) {
  std::mt19937_64 random(~seed);
  WireOptions options = {.row_major_program = random() % 2 == 0,
                         .row_major_arguments = random() % 2 == 0,
                         .by_fingerprint = random() % 2 == 0};
  if (random() % 4 == 0) {
    for (const std::string& pass : PassNames()) {
      if (random() % 2 == 0) options.disabled_passes.push_back(pass);
    }
  }
  return options;
}

// The counts of compared elements in a run.
struct Compared {
  int64_t elements = 0;
  int64_t exact = 0;    // bit for bit
  int64_t unknown = 0;  // of which the reference knows nothing
  OpCounts ops;

  void Add(const BoundedLiteral& want) {
    const size_t n = static_cast<size_t>(want.value.num_elements());
    elements += static_cast<int64_t>(n);
    for (size_t i = 0; i < n; ++i) {
      exact += want.radius_at(i) == 0;
      unknown += std::isinf(want.radius_at(i));
    }
  }

  void Add(const Compared& other) {
    elements += other.elements, exact += other.exact, unknown += other.unknown;
    ops.Add(other.ops);
  }
};

// Empty if the server agrees with the reference on every set of arguments.
std::string Disagreement(v1::Compute::Stub& stub, const Graph& graph,
                         const std::vector<std::vector<Literal>>& arguments, const WireOptions& options,
                         Compared* compared) {
  Graph typed = graph;
  const auto guards = InferTypes(&typed);
  if (!guards.ok()) return absl::StrCat("the graph is invalid: ", guards.status().ToString());
  const auto got = RunThroughWire(stub, graph, arguments, options);
  if (!got.ok()) return absl::StrCat("the server says ", got.status().ToString());
  for (size_t set = 0; set < arguments.size(); ++set) {
    const auto want = EvaluateBounded(typed, *guards, arguments[set]);
    if (!want.ok()) return absl::StrCat("the reference says ", want.status().ToString());
    if ((*got)[set].size() != want->size()) return absl::StrCat((*got)[set].size(), " results");
    for (size_t i = 0; i < want->size(); ++i) {
      const std::string difference = DifferenceFrom((*got)[set][i], (*want)[i]);
      if (!difference.empty()) {
        return absl::StrCat("arguments ", set, ", output ", typed.outputs()[i].name, ": ", difference);
      }
      if (compared != nullptr) compared->Add((*want)[i]);
    }
  }
  return "";
}

struct Failure {
  uint64_t seed;
  std::string message;
};

// The smallest case that fails alike, in words.
std::string Explained(InProcessServer& server, const RandomCase& failed, const WireOptions& options) {
  const StillFails still_fails = [&](const FailingCase& candidate) {
    return !Disagreement(server.stub(), candidate.graph, {candidate.arguments}, options, nullptr).empty();
  };
  for (const std::vector<Literal>& arguments : failed.arguments) {
    if (!still_fails({failed.graph, arguments})) continue;
    const FailingCase small = Shrink({failed.graph, arguments}, still_fails, absl::Now() + kShrinkTime);
    return absl::StrCat("smallest case:\n", ToString(small), "\n",
                        Disagreement(server.stub(), small.graph, {small.arguments}, options, nullptr));
  }
  std::string text = "only with all sets of arguments, one after the other:\n";
  for (const auto& arguments : failed.arguments) absl::StrAppend(&text, ToString(FailingCase{failed.graph, arguments}));
  return text;
}

TEST(RandomGraphs, EveryOpHasAGrowthRule) {
  for (const OpDef& op : CoreOps()) {
    EXPECT_NE(FindGrowthRule(static_cast<CoreOp>(op.index)), nullptr)
        << "no random graph has the op \"" << op.name << "\": give it a rule in tests/testlib/property/growth_rules.cc";
  }
}

// Sends every stride-th of the graphs to a server with that setting. A wrong result is a failure of the test.
void RunSetting(const MatrixSetting& setting, const SeedRange& seeds, int64_t stride, Compared* total) {
  std::vector<std::string> server_settings = ServerSettings(setting);
  server_settings.push_back("program_cache.bytes=67108864");  // dropped soon, so that a run needs little memory
  InProcessServer server(server_settings);
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::optional<Failure> failure;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      const auto stub = v1::Compute::NewStub(server.Dial());
      Compared mine;
      for (int64_t i = next.fetch_add(stride); i < seeds.count; i = next.fetch_add(stride)) {
        const uint64_t seed = seeds.first + static_cast<uint64_t>(i);
        const RandomCase random_case = MakeRandomCase({}, seed);
        mine.ops.Add(random_case.graph);
        const std::string message =
            Disagreement(*stub, random_case.graph, random_case.arguments, RandomOptions(seed), &mine);
        if (message.empty()) continue;
        next = seeds.count;
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure.has_value() || seed < failure->seed) failure = {seed, message};
      }
      const std::lock_guard<std::mutex> lock(mutex);
      total->Add(mine);
    });
  }
  for (std::thread& client : clients) client.join();
  if (!failure.has_value()) return;
  const WireOptions options = RandomOptions(failure->seed);
  FAIL() << "TENSORD_SEED=" << failure->seed << " TENSORD_GRAPHS=1 TENSORD_SETTINGS='" << setting.name << "' ("
         << ToString(options) << "): " << failure->message << "\n"
         << Explained(server, MakeRandomCase({}, failure->seed), options);
}

TEST(RandomGraphs, AgreeWithTheReferenceThroughTheWire) {
  const SeedRange seeds = ChosenSeeds(kDefaultSeeds);
  const std::vector<MatrixSetting> settings = ChosenSettings();
  const int64_t stride = static_cast<int64_t>(settings.size());
  std::cout << seeds.count << " graphs from TENSORD_SEED=" << seeds.first << ", each under one of " << stride
            << " settings" << std::endl;
  Compared total;
  for (int64_t i = 0; i < stride && !HasFailure(); ++i) {
    // The setting of a graph is its seed's, wherever the range begins.
    const int64_t skipped = (i + stride - static_cast<int64_t>(seeds.first % static_cast<uint64_t>(stride))) % stride;
    if (skipped >= seeds.count) continue;
    const SeedRange rest = {.first = seeds.first + static_cast<uint64_t>(skipped), .count = seeds.count - skipped};
    RunSetting(settings[static_cast<size_t>(i)], rest, stride, &total);
  }
  if (HasFailure()) return;
  std::cout << total.ops.ToString() << total.elements << " elements compared, " << total.exact
            << " of them bit for bit; " << total.unknown << " of open value" << std::endl;
  // A bound that knows nothing would let anything pass.
  EXPECT_LT(total.unknown * 10, total.elements);
  EXPECT_GT(total.exact * 2, total.elements);
  if (seeds.count >= 500) {
    EXPECT_EQ(total.ops.Missing(/*every_dtype=*/seeds.count >= 10'000), "");
  }
}

TEST(RandomGraphs, OneProgramServesFiftySizes) {
  InProcessServer server;
  // Affine layer, normalised, with sizes that follow from three symbols.
  const auto literal = [](ConcreteType type, std::mt19937_64* random) {
    return RandomLiteral(type, Values::kModest, random);
  };
  Graph graph;
  const Dim n(DimExpr::Symbol("n")), m(DimExpr::Symbol("m")), k(DimExpr::Symbol("k"));
  const ValueId x = graph.AddInput("x", {.dtype = DType::kF32, .shape = {n, m}});
  const ValueId w = graph.AddInput("w", {.dtype = DType::kF32, .shape = {m, k}});
  const ValueId b = graph.AddInput("b", {.dtype = DType::kF32, .shape = {k}});
  const auto add = [&graph](CoreOp op, Attributes attrs, std::initializer_list<ValueId> operands) {
    Node node{.name = absl::StrCat("n", graph.nodes().size()), .op = &Def(op), .attrs = std::move(attrs)};
    node.operands.assign(operands.begin(), operands.end());
    return graph.AddNode(std::move(node));
  };
  const ValueId product = add(CoreOp::kDotGeneral,
                              AttrsOf(CoreOp::kDotGeneral)
                                  .Set("lhs_contracting_dimensions", Ints{1})
                                  .Set("rhs_contracting_dimensions", Ints{0}),
                              {x, w});
  const std::vector<DimExpr> like_product = {DimExpr::OperandAxis(1, 0), DimExpr::OperandAxis(1, 1)};
  const ValueId wide = add(
      CoreOp::kBroadcastInDim,
      AttrsOf(CoreOp::kBroadcastInDim).Set("shape", like_product).Set("broadcast_dimensions", Ints{1}), {b, product});
  const ValueId sum = add(CoreOp::kAdd, {}, {product, wide});
  const ValueId flat = add(CoreOp::kReshape,
                           AttrsOf(CoreOp::kReshape)
                               .Set("shape", std::vector<DimExpr>{DimExpr::Multiply(n.size, k.size).value()})
                               .Set("order", static_cast<int64_t>(Order::kRowMajor)),
                           {sum});
  graph.AddOutput("sum", sum);
  graph.AddOutput("flat", flat);
  graph.AddOutput(
      "columns",
      add(CoreOp::kReduce,
          AttrsOf(CoreOp::kReduce).Set("kind", static_cast<int64_t>(ReduceKind::kSum)).Set("dimensions", Ints{0}),
          {sum}));
  ASSERT_TRUE(InferTypes(&graph).ok());

  std::mt19937_64 random(50);
  std::vector<std::vector<Literal>> arguments;
  for (int64_t i = 0; i < 50; ++i) {
    const int64_t rows = i, columns = i * 7 % 13, units = i % 5 == 0 ? 0 : i % 17;
    arguments.push_back({literal({DType::kF32, {rows, columns}}, &random),
                         literal({DType::kF32, {columns, units}}, &random), literal({DType::kF32, {units}}, &random)});
  }
  EXPECT_EQ(Disagreement(server.stub(), graph, arguments, {.row_major_program = true, .by_fingerprint = true}, nullptr),
            "");
  EXPECT_EQ(server.parts().cache->stats().compiled, 1) << "one program for every size";
}

}  // namespace
}  // namespace tensord::property
