// Graphs that once went wrong, made small: those of tests/conformance/graphs, in text form, under every setting of the
// matrix against the reference evaluator.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/runs/compiled_run.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/testlib/runs/settings_matrix.h"

namespace tensord {
namespace {

std::vector<std::filesystem::path> Files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/conformance/graphs")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Arguments for which every symbol has that size; small integers, which may be sizes and indices.
std::vector<Literal> ArgumentsOf(const Graph& graph, int64_t size, std::mt19937_64* random) {
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype};
    for (const Dim& dim : input.type.shape) type.shape.push_back(dim.is_static() ? dim.size.constant() : size);
    arguments.push_back(RandomLiteral(type, Values::kIntegers, random));
  }
  return arguments;
}

TEST(FoundGraphs, AgreeUnderEverySetting) {
  std::vector<std::unique_ptr<SettingRun>> settings;
  for (const MatrixSetting& setting : ChosenSettings()) settings.push_back(std::make_unique<SettingRun>(setting));
  std::mt19937_64 random(3);
  ASSERT_FALSE(Files().empty());
  for (const std::filesystem::path& file : Files()) {
    SCOPED_TRACE(file.string());
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const absl::StatusOr<Graph> graph = ParseGraph(text.str(), CoreRegistry());
    ASSERT_TRUE(graph.ok()) << graph.status();
    Graph typed = *graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    for (const int64_t size : {0, 1, 2, 5, 40}) {
      const std::vector<Literal> arguments = ArgumentsOf(*graph, size, &random);
      const auto want = property::EvaluateBounded(typed, *guards, arguments);
      ASSERT_TRUE(want.ok()) << want.status();
      for (const std::unique_ptr<SettingRun>& setting : settings) {
        for (const bool row_major : {false, true}) {
          SCOPED_TRACE(testing::Message() << setting->name() << ", size " << size << (row_major ? ", row-major" : ""));
          const auto program = setting->CompileGraph(*graph, row_major);
          ASSERT_TRUE(program.ok()) << program.status();
          const auto got = RunCompiled(**program, arguments);
          ASSERT_TRUE(got.ok()) << got.status();
          ASSERT_EQ(got->size(), want->size());
          for (size_t i = 0; i < got->size(); ++i) EXPECT_EQ(property::DifferenceFrom((*got)[i], (*want)[i]), "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensord
