#include "engine/exec/program/program_passes.h"

#include "engine/base/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using testing::HasSubstr;

TEST(PassNames, RefusesAPassThatDoesNotExist) {
  EXPECT_TRUE(CheckPassNames(PassNames()).ok());
  for (absl::string_view name : {"", "Eliminate_dead_code", "fold_transposes ", "no_such_pass"}) {
    const std::vector<std::string> names = {"eliminate_dead_code", "mark_last_uses", std::string(name)};
    const absl::Status status = CheckPassNames(names);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(DetailOf(status)->reason, "PASS_UNKNOWN");
    EXPECT_THAT(std::string(status.message()), HasSubstr("fold_transposes"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("mark_last_uses"));
  }
}

}  // namespace
}  // namespace tensord
