// The corpora as ordinary tests: what libFuzzer found once is looked at by every change.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_targets.h"

namespace tensord {
namespace {

constexpr char kCorpus[] = "tests/fuzz/corpus";

std::vector<std::filesystem::path> InOrder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class FuzzReplayTest : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzReplayTest, TheCorpus) {
  GetParam().run({});
  const std::vector<std::filesystem::path> paths = InOrder(std::filesystem::path(kCorpus) / GetParam().name);
  EXPECT_FALSE(paths.empty());
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file.is_open()) << path;
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::printf("%s: %zu bytes\n", path.c_str(), bytes.size());  // first, so that a crash names its input
    std::fflush(stdout);
    GetParam().run(bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplayTest, ::testing::ValuesIn(FuzzTargets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FuzzReplay, EveryCorpusHasATarget) {
  std::vector<std::string> folders, names;
  for (const std::filesystem::path& path : InOrder(kCorpus)) folders.push_back(path.filename());
  for (const FuzzTarget& target : FuzzTargets()) names.emplace_back(target.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(folders));
}

}  // namespace
}  // namespace tensord
