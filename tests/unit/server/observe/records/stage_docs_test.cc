#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/observe/records/stage_times.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kHelp[] = {
#define TENSORD_STAGE(member, name, help) help,
#include "server/observe/records/stages.def"
#undef TENSORD_STAGE
};

TEST(StageDocsTest, ThePageHasTheTable) {
  std::stringstream page;
  page << std::ifstream("docs/operate/tracing.md").rdbuf();
  std::string table;
  for (size_t i = 0; i < kNumStages; ++i) absl::StrAppend(&table, "| `", kStageNames[i], "` | ", kHelp[i], " |\n");
  EXPECT_THAT(page.str(), ::testing::HasSubstr(table));
}

}  // namespace
}  // namespace tensord::server
