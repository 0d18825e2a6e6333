// Random graphs over the whole vocabulary, compiled under every setting of the matrix, against the reference evaluator:
// within the bounds of tests/testlib/property/reference_bounds.h. tests/e2e/property tests the wire.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs, TENSORD_SETTINGS=TEXT the settings
// whose names hold that text. A failure is made small and printed.

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/random_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/hidden_memory_backend.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/testlib/runs/settings_matrix.h"

namespace tensord::property {
namespace {

TEST(RandomGraphs, AgreeUnderEverySetting) {
  std::vector<std::unique_ptr<SettingRun>> settings;
  for (const MatrixSetting& setting : ChosenSettings()) settings.push_back(std::make_unique<SettingRun>(setting));
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
