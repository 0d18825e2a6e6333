#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/golden/graph_cases.h"
#include "tests/testlib/golden.h"

namespace tensord {
namespace {

constexpr char kRoot[] = "tests/golden";

class GoldenTest : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenTest, GivesWhatIsExpected) {
  const std::filesystem::path path = GetParam();
  const std::string folder = path.lexically_relative(kRoot).begin()->string();
  absl::StatusOr<GoldenFile> file = ReadGoldenFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (GoldenCase& c : file->cases) {
    const std::string actual = RunGraphCase(folder, c.input);
    if (UpdateGolden()) {
      c.expected = actual;
    } else {
      EXPECT_EQ(actual, c.expected) << path.string() << ":" << c.line << ": " << c.name
                                    << "\nwhere the change is meant, run ./dev update-golden and read its diff";
    }
  }
  if (UpdateGolden()) {
    const absl::Status status = WriteGoldenFile(path, *file);
    EXPECT_TRUE(status.ok()) << status;
  }
}

std::string NameOf(const testing::TestParamInfo<std::filesystem::path>& info) {
  std::string name = info.param.lexically_relative(kRoot).replace_extension().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(GoldenFilesIn(kRoot)), NameOf);

}  // namespace
}  // namespace tensord
