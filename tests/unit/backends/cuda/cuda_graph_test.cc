// Sessions that are replayed as graphs: how many calls of the driver a run takes, and bytes over the bus.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/device/lane.h"
#include "backends/cuda/graph_cache.h"
#include "backends/cuda/kept_graphs.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "engine/runtime/devices/run.h"
#include "gmock/gmock.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

constexpr int64_t kSide = 64;
constexpr int kLayers = 10;

// Layers of a product, which is cublasLt's, and what is fused behind it.
std::string Layers() {
  std::string text = absl::StrCat("graph \"layers\" {\n  %h0 = input : f32[", kSide, ",", kSide, "]\n");
  for (int i = 0; i < kLayers; ++i) {
    absl::StrAppend(&text, "  %w", i, " = input : f32[", kSide, ",", kSide, "]\n");
  }
  for (int i = 0; i < kLayers; ++i) {
    absl::StrAppend(&text, "  %p", i, " = dot_general(%h", i, ", %w", i,
                    ") {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\n");
    absl::StrAppend(&text, "  %t", i, " = tanh(%p", i, ")\n  %h", i + 1, " = add(%t", i, ", %h", i, ")\n");
  }
  absl::StrAppend(&text, "  output \"h\" = %h", kLayers, "\n}\n");
  return text;
}

// Extremes along one axis and the other, which no kernel has both of, and no library is asked for.
constexpr absl::string_view kAlternating = R"(graph "extremes" {
  %x = input : f32[64,64]
  %a = reduce(%x) {kind = max, dimensions = [0]}
  %ab = broadcast_in_dim(%a) {shape = [64, 64], broadcast_dimensions = [1]}
  %c = subtract(%x, %ab)
  %d = reduce(%c) {kind = max, dimensions = [1]}
  %db = broadcast_in_dim(%d) {shape = [64, 64], broadcast_dimensions = [0]}
  %e = subtract(%c, %db)
  %f = reduce(%e) {kind = max, dimensions = [0]}
  %fb = broadcast_in_dim(%f) {shape = [64, 64], broadcast_dimensions = [1]}
  %g = subtract(%e, %fb)
  %h = reduce(%g) {kind = min, dimensions = [1]}
  output "h" = %h
})";

class CudaGraphTest : public BesideCpuTest {
 protected:
  // What a run asks of the driver.
  struct Calls {
    long kernels, graphs, uploads, uploaded_bytes, downloaded_bytes;
  };
  Calls Now() {
    return {.kernels = hostCudaCalls("cuLaunchKernel"),
            .graphs = hostCudaCalls("cuGraphLaunch"),
            .uploads = hostCudaCalls("cuMemcpyHtoDAsync_v2"),
            .uploaded_bytes = hostCudaBytes("cuMemcpyHtoDAsync_v2"),
            .downloaded_bytes = hostCudaBytes("cuMemcpyDtoHAsync_v2")};
  }
  Calls Since(const Calls& before) {
    const Calls now = Now();
    return {.kernels = now.kernels - before.kernels,
            .graphs = now.graphs - before.graphs,
            .uploads = now.uploads - before.uploads,
            .uploaded_bytes = now.uploaded_bytes - before.uploaded_bytes,
            .downloaded_bytes = now.downloaded_bytes - before.downloaded_bytes};
  }

  std::shared_ptr<const CompiledProgram> Compiled(Backend* backend, const std::string& text = Layers()) {
    auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }
  // The layers' arguments, small enough that nothing saturates.
  std::vector<Literal> Arguments() {
    std::vector<Literal> arguments;
    for (int i = 0; i <= kLayers; ++i) {
      Literal argument = RandomLiteral({DType::kF32, {kSide, kSide}}, Values::kModest, &random_);
      for (float& x : argument.mutable_values<float>()) x /= 64;
      arguments.push_back(std::move(argument));
    }
    return arguments;
  }
  static std::vector<RunTensor> Resident(Backend* backend, const std::vector<Literal>& arguments) {
    std::vector<RunTensor> tensors;
    for (const Literal& argument : arguments) {
      RunTensor& tensor = tensors.emplace_back(RunTensor{.type = argument.type()});
      const auto values = argument.values<float>();
      tensor.buffer =
          *backend->Import(values.data(), static_cast<int64_t>(values.size() * sizeof(float)), /*owner=*/nullptr);
    }
    return tensors;
  }
  static absl::StatusOr<std::string> Run(const std::shared_ptr<const CompiledProgram>& program,
                                         const std::vector<RunTensor>& arguments, bool profile = false) {
    RunRequest run;
    run.program = program;
    run.arguments = arguments;
    run.profile = profile;
    auto outcome = RunProgram(run, absl::ZeroDuration());
    if (!outcome.ok()) return outcome.status();
    const RunTensor& result = outcome->results[0];
    return std::string(static_cast<const char*>(result.bytes.get()), static_cast<size_t>(result.type.num_bytes()));
  }
};

TEST_F(CudaGraphTest, AProgramThatRunsAgainIsOneLaunchAndItsArgumentsStayWhereTheyAre) {
  hostCudaSet("DELAY_US", "200");
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get());
  const std::vector<Literal> literals = Arguments();
  ExpectAsOnCpu(backend.get(), Layers(), literals, {.norm_relative = 1e-5});
  const std::vector<RunTensor> arguments = Resident(backend.get(), literals);
  Calls before = Now();
  const auto first = Run(program, arguments);
  ASSERT_TRUE(first.ok()) << first.status();
  const Calls alone = Since(before);
  EXPECT_GE(alone.kernels, kLayers);
  EXPECT_EQ(alone.graphs, 0) << "most programs run once with the same addresses";
  const auto second = Run(program, arguments);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *first);
  for (int i = 0; i < 3; ++i) {
    before = Now();
    const auto again = Run(program, arguments);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *first);
    const Calls replayed = Since(before);
    EXPECT_EQ(replayed.kernels, 0);
    EXPECT_EQ(replayed.graphs, 1);
    EXPECT_EQ(replayed.uploads, 0);
    EXPECT_EQ(replayed.uploaded_bytes, 0);
    EXPECT_EQ(replayed.downloaded_bytes, kSide * kSide * 4) << "the result";
  }
  before = Now();
  EXPECT_EQ(*Run(program, arguments, /*profile=*/true), *first);
  EXPECT_EQ(Since(before).graphs, 0) << "a profile tells the kernels' own times";
}

TEST_F(CudaGraphTest, EachOfAFewSetsOfAddressesHasItsGraph) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get());
  std::vector<std::vector<RunTensor>> sets;
  std::vector<std::string> want;
  for (int i = 0; i < 6; ++i) {
    sets.push_back(Resident(backend.get(), Arguments()));
    want.push_back(*Run(program, sets.back()));
  }
  for (int round = 0; round < 3; ++round) {
    const Calls before = Now();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(*Run(program, sets[i]), want[i]);
    const Calls calls = Since(before);
    EXPECT_EQ(calls.graphs, round == 0 ? 0 : 3);
    EXPECT_EQ(calls.kernels == 0, round == 2);
  }
  // More than it keeps: all are launched one by one, with the same results.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < sets.size(); ++i) EXPECT_EQ(*Run(program, sets[i]), want[i]);
  }
}

// Programs together keep so many graphs. What is dropped is made again, and goes with its program.
TEST_F(CudaGraphTest, ProgramsTogetherKeepSoManyGraphs) {
  const auto counts = std::make_shared<DeviceCounts>();
  auto made = MakeCudaBackend({.libraries = libraries_.get(),
                               .tensor_bytes = 256 * kMiB,
                               .host_memory = host_memory_,
                               .counts = counts,
                               .most_ahead = most_ahead_});
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<Backend> backend = *std::move(made);
  const int most = static_cast<int>(KeptGraphs::kMost);
  const std::vector<RunTensor> arguments = Resident(backend.get(), {Arguments()[0]});
  std::vector<std::shared_ptr<const CompiledProgram>> programs;
  std::string first;
  for (int i = 0; i < most + 2; ++i) {
    programs.push_back(Compiled(backend.get(), std::string(kAlternating)));
    for (int run = 0; run < 2; ++run) {
      const auto result = Run(programs.back(), arguments);
      ASSERT_TRUE(result.ok()) << result.status();
      if (first.empty()) first = *result;
      EXPECT_EQ(*result, first);
    }
    EXPECT_EQ(counts->graphs, std::min(i + 1, most));
    EXPECT_EQ(*Run(programs[0], arguments), first) << "the one that is used most";
  }
  EXPECT_EQ(counts->captured_graphs, most + 2);
  EXPECT_EQ(*Run(programs[1], arguments), first);
  EXPECT_EQ(counts->captured_graphs, most + 3);
  EXPECT_EQ(counts->graphs, most);
  EXPECT_EQ(counts->failed_captures, 0);
  programs.resize(1);
  EXPECT_EQ(counts->graphs, 1);
  programs.clear();
  EXPECT_EQ(counts->graphs, 0);
}

TEST_F(CudaGraphTest, GraphsTogetherHaveSoManyNodes) {
  const std::shared_ptr<Context> context = Entered();
  const auto lane = *Lane::Create(context, libraries_.get());
  const auto pool = *DevicePool::Create(context, {.limit_bytes = 8 * kMiB});
  const std::shared_ptr<Buffer> memory = *pool->Allocate(64);
  const auto graph_of = [&](int nodes) {
    return lane->Capture([&](CuStream stream) {
      for (int i = 0; i < nodes; ++i) {
        const auto address = reinterpret_cast<CuAddress>(memory->address());
        EXPECT_EQ(libraries_->driver().cuMemsetD8Async(address, 0, 64, stream), kCuSuccess);
      }
      return absl::OkStatus();
    });
  };
  KeptGraphs kept(/*most=*/3, /*most_nodes=*/10);
  std::vector<std::weak_ptr<Graph>> graphs;
  for (const int nodes : {4, 4, 3, 20, 1, 1, 1, 1}) {
    const std::shared_ptr<Graph> graph = graph_of(nodes);
    ASSERT_NE(graph, nullptr);
    ASSERT_EQ(graph->num_nodes(), static_cast<size_t>(nodes));
    kept.Use(graph);
    graphs.push_back(graph);
    // Of the first three the last two fit; then a large one is alone, until the next.
    const size_t gone = graphs.size() < 3 ? 0 : graphs.size() == 3 ? 1 : graphs.size() == 4 ? 3 : 4;
    for (size_t i = 0; i < graphs.size(); ++i) {
      EXPECT_EQ(graphs[i].expired(), i < gone || (i == 4 && graphs.size() == 8)) << i << " of " << graphs.size();
    }
  }
  EXPECT_TRUE(graphs[4].expired());
  kept.Drop(graphs[6].lock());
  EXPECT_TRUE(graphs[6].expired());
  EXPECT_FALSE(graphs[5].expired());
}

TEST_F(CudaGraphTest, WhatCannotBeCapturedIsLaunchedOneByOne) {
  for (const char* function :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetNodes", "cuGraphInstantiateWithFlags"}) {
    const std::unique_ptr<Backend> backend = Made();
    const auto program = Compiled(backend.get());
    const std::vector<Literal> literals = Arguments();
    std::vector<std::vector<RunTensor>> kept = {Resident(backend.get(), literals)};
    const auto first = Run(program, kept[0]);
    ASSERT_TRUE(first.ok()) << first.status();
    // It is tried again, and given up in the end.
    for (const int failures : {1, GraphCache::kMostAttempts}) {
      const std::vector<RunTensor> arguments = Resident(backend.get(), literals);
      for (int i = 0; i <= failures + 1; ++i) {
        if (i > 0 && i <= failures) hostCudaFail(function, 1, kCuOutOfMemory);
        const Calls before = Now();
        const auto run = Run(program, arguments);
        ASSERT_TRUE(run.ok()) << function << ": " << run.status();
        EXPECT_EQ(*run, *first);
        EXPECT_EQ(Since(before).graphs, i == 2 && failures == 1) << function << " " << i;
      }
      hostCudaFail("", 0, 0);
      kept.push_back(arguments);
    }
  }
}

TEST_F(CudaGraphTest, AGraphThatFailsEndsItsRunAlone) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get());
  const std::vector<Literal> literals = Arguments();
  const std::vector<RunTensor> arguments = Resident(backend.get(), literals);
  const auto first = Run(program, arguments);
  ASSERT_TRUE(first.ok() && Run(program, arguments).ok()) << first.status();
  hostCudaFail("cuGraphLaunch", 1, kCuUnknown);
  EXPECT_EQ(Run(program, arguments).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(*Run(program, arguments), *first);
}

TEST_F(CudaGraphTest, RunsAtOnceOnTwoLanesHaveTheirOwnGraphs) {
  hostCudaSet("DELAY_US", "300");
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get());
  std::vector<std::vector<RunTensor>> sets;
  std::vector<std::string> want;
  for (int i = 0; i < 3; ++i) {
    sets.push_back(Resident(backend.get(), Arguments()));
    want.push_back(*Run(program, sets.back()));
  }
  const Calls before = Now();
  std::vector<std::thread> threads;
  std::vector<int> wrong(sets.size());
  for (size_t t = 0; t < sets.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto run = Run(program, sets[t]);
        wrong[t] += !run.ok() || *run != want[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(sets.size()));
  EXPECT_GT(Since(before).graphs, 0);
}

// Its handles of libraries cannot be made in a capture.
TEST_F(CudaGraphTest, ALaneThatHasRunNothingCaptures) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get(), R"(graph "systems" {
  %x = input : f32[64,64]
  %p = dot_general(%x, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
  %s = tensord.linalg.v1.TriangularSolve(%x, %p)
  %t = tensord.linalg.v1.TriangularSolve(%x, %s)
  %q = dot_general(%t, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
  output "q" = %q
})");
  std::vector<Literal> literals = {Arguments()[0]};
  for (size_t i = 0; i < kSide; ++i) literals[0].mutable_values<float>()[i * (kSide + 1)] = 2;
  const std::vector<RunTensor> arguments = Resident(backend.get(), literals);
  const auto first = Run(program, arguments);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto other = backend->OpenSession();  // has the lane of the first run
  ASSERT_TRUE(other.ok());
  const Calls before = Now();
  std::thread([&] {
    const auto second = Run(program, arguments);
    EXPECT_TRUE(second.ok() && *second == *first) << second.status();
  }).join();
  EXPECT_EQ(Since(before).graphs, 1);
}

// A solver may wait for the device, and a capture would refuse that.
TEST_F(CudaGraphTest, WhatWaitsForTheDeviceIsNotCaptured) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get(), R"(graph "solver" {
  %x = input : f32[64,64]
  %svd:3 = tensord.linalg.v1.Svd(%x)
  %a = reduce(%x) {kind = max, dimensions = [0]}
  %b = reduce(%x) {kind = max, dimensions = [1]}
  %c = dot_general(%x, %x) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
  output "s" = %svd:1
  output "a" = %a
  output "b" = %b
  output "c" = %c
})");
  const std::vector<RunTensor> arguments = Resident(backend.get(), {Arguments()[0]});
  const Calls before = Now();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Run(program, arguments).ok());
  EXPECT_EQ(Since(before).graphs, 0);
}

TEST_F(CudaGraphTest, ExplainTellsOfTheGraph) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get(), std::string(kAlternating));
  const std::vector<RunTensor> arguments = Resident(backend.get(), {Arguments()[0]});
  const Calls before = Now();
  ASSERT_TRUE(Run(program, arguments).ok());
  const long kernels = Since(before).kernels;
  EXPECT_THAT(ExplainProgram(*program), HasSubstr("\nsession 0\n"));
  ASSERT_TRUE(Run(program, arguments).ok());
  EXPECT_THAT(ExplainProgram(*program),
              HasSubstr(absl::StrCat("\nsession 0, replayed as one graph of ", kernels, " nodes\n")));
}

TEST_F(CudaGraphTest, ALostDeviceHasNewGraphs) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compiled(backend.get(), std::string(kAlternating));
  const std::vector<Literal> literals = {Arguments()[0]};
  std::vector<RunTensor> arguments = Resident(backend.get(), literals);
  const auto first = Run(program, arguments);
  ASSERT_TRUE(first.ok() && Run(program, arguments).ok()) << first.status();
  hostCudaFail("cuGraphLaunch", 1, kCuIllegalAddress);
  EXPECT_EQ(ReasonOf(Run(program, arguments).status()), "DEVICE_LOST");
  arguments = Resident(backend.get(), literals);
  const Calls before = Now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*Run(program, arguments), *first);
  EXPECT_EQ(Since(before).graphs, 2);
}

}  // namespace
}  // namespace tensord::cuda
