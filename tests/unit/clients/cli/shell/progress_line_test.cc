#include "clients/cli/shell/progress_line.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

TEST(ProgressLine, IsWrittenOverAndGoneInTheEnd) {
  std::ostringstream out, err;
  Console console(out, err);
  console.set_progress_columns(6);
  {
    ProgressLine line(console);
    line.Show("abc");
    line.Show("abcdefgh");
    EXPECT_EQ(err.str(), "\rabc\x1b[K\rabcde\x1b[K") << "the last column stays free";
  }
  EXPECT_EQ(err.str(), "\rabc\x1b[K\rabcde\x1b[K\r\x1b[K");
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressLine, IsNothingWithoutATerminal) {
  std::ostringstream out, err;
  Console console(out, err);
  ProgressLine line(console);
  line.Show("abc");
  line.Clear();
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace tensord::cli
