#include "clients/cli/shell/table.h"

#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"NAME", ">BYTES", "LAST"});
  EXPECT_EQ(table.Text(), "NAME  BYTES  LAST\n");
  table.Add({"x", "123456", "now"});
  table.Add({"longer", "1", ""});
  EXPECT_EQ(table.Text(),
            "NAME     BYTES  LAST\n"
            "x       123456  now\n"
            "longer       1  -\n");
}

}  // namespace
}  // namespace tensord::cli
