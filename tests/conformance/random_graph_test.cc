// Random graphs over the whole vocabulary, compiled under every setting of the matrix, against the reference
// evaluator: within the bounds of tests/testlib/property/reference_bounds.h. What the wire adds is tested in
// tests/e2e/property.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs, TENSORD_SETTINGS=TEXT the settings
// whose names hold that text. A failure is made small and printed.

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/base/status_macros.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/compiled_run.h"
#include "tests/testlib/hidden_memory_backend.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/property/shrinker.h"
#include "tests/testlib/setting_run.h"
#include "tests/testlib/settings_matrix.h"

namespace tensord::property {
namespace {

constexpr absl::Duration kShrinkTime = absl::Seconds(60);

// Results and how far they may be off, by set of arguments.
using Wanted = std::vector<std::vector<BoundedLiteral>>;

absl::StatusOr<Wanted> WantedOf(const Graph& graph, const std::vector<std::vector<Literal>>& arguments) {
  Graph typed = graph;
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&typed));
  Wanted wanted;
  for (const std::vector<Literal>& set : arguments) {
    ASSIGN_OR_RETURN(std::vector<BoundedLiteral> results, EvaluateBounded(typed, guards, set));
    wanted.push_back(std::move(results));
  }
  return wanted;
}

// Empty where the compiled graph's results are what is wanted, for every set of arguments.
std::string Disagreement(SettingRun& setting, bool row_major, const Graph& graph,
                         const std::vector<std::vector<Literal>>& arguments, const Wanted& wanted) {
  const auto program = setting.CompileGraph(graph, row_major);
  if (!program.ok()) return absl::StrCat("compiling: ", program.status().ToString());
  for (size_t set = 0; set < arguments.size(); ++set) {
    // Whether the run may write over its arguments shows nowhere.
    const absl::InlinedVector<bool, 16> donated(arguments[set].size(), set % 2 == 1);
    const auto got = RunCompiled(**program, arguments[set], 0, donated);
    if (!got.ok()) return absl::StrCat("running on arguments ", set, ": ", got.status().ToString());
    if (got->size() != wanted[set].size()) return absl::StrCat(got->size(), " results");
    for (size_t i = 0; i < got->size(); ++i) {
      const std::string difference = DifferenceFrom((*got)[i], wanted[set][i]);
      if (!difference.empty()) return absl::StrCat("arguments ", set, ", output ", i, ": ", difference);
    }
  }
  return "";
}

// The smallest case that fails alike, in words.
std::string Explained(SettingRun& setting, bool row_major, const RandomCase& failed) {
  const auto disagreement = [&](const FailingCase& candidate) -> std::string {
    const auto wanted = WantedOf(candidate.graph, {candidate.arguments});
    if (!wanted.ok()) return "";
    return Disagreement(setting, row_major, candidate.graph, {candidate.arguments}, *wanted);
  };
  const StillFails still_fails = [&](const FailingCase& candidate) { return !disagreement(candidate).empty(); };
  for (const std::vector<Literal>& arguments : failed.arguments) {
    if (!still_fails({failed.graph, arguments})) continue;
    const FailingCase small = Shrink({failed.graph, arguments}, still_fails, absl::Now() + kShrinkTime);
    return absl::StrCat("smallest case:\n", ToString(small), "\n", disagreement(small));
  }
  return "only with all sets of arguments, one after the other";
}

TEST(RandomGraphs, AgreeUnderEverySetting) {
  std::vector<std::unique_ptr<SettingRun>> settings;
  for (const MatrixSetting& setting : ChosenSettings()) {
    auto backend = MakeCpuBackend({.threads = setting.threads,
                                   .pool_bytes = setting.pool_bytes,
                                   .jit = CpuUseNamed(setting.jit),
                                   .epilogues = CpuUseNamed(setting.epilogues),
                                   .chain_block_bytes = setting.chain_block_bytes});
    settings.push_back(std::make_unique<SettingRun>(setting, std::move(backend)));
  }
  auto backend = std::make_unique<HiddenMemoryBackend>();
  const HiddenMemoryBackend& hidden = *backend;
  settings.push_back(
      std::make_unique<SettingRun>(MatrixSetting{.name = "memory that the host cannot read"}, std::move(backend)));
  const SeedRange seeds = ChosenSeeds({.first = 0, .count = 4000});
  std::cout << seeds.count << " graphs from TENSORD_SEED=" << seeds.first << " under " << settings.size() << " settings"
            << std::endl;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    const RandomCase random_case = MakeRandomCase({.max_nodes = 40, .size_choices = 2}, seed);
    const absl::StatusOr<Wanted> wanted = WantedOf(random_case.graph, random_case.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    const bool row_major = seed % 2 == 1;
    for (const std::unique_ptr<SettingRun>& setting : settings) {
      const std::string problem = Disagreement(*setting, row_major, random_case.graph, random_case.arguments, *wanted);
      ASSERT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1 TENSORD_SETTINGS='" << setting->name()
                             << "'" << (row_major ? ", row-major\n" : "\n")
                             << Explained(*setting, row_major, random_case);
    }
  }
  EXPECT_EQ(hidden.live_buffers(), 0);
}

}  // namespace
}  // namespace tensord::property
