// Runs the programs that TENSORD_EXAMPLES names, separated by colons, against a server of their own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_binary.h"

namespace tensord {
namespace {

// Returns the exit status of `program TARGET`, or -1 if it did not exit.
int ExitStatusOf(const std::string& program, const std::string& target) {
  const pid_t child = fork();
  if (child == 0) {
    execl(program.c_str(), program.c_str(), target.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(CppExamples, FindTheirOwnResultsRight) {
  const char* examples = std::getenv("TENSORD_EXAMPLES");
  if (examples == nullptr || ServerBinary::Path().empty()) GTEST_SKIP() << "no examples, or no server to run them with";
  auto server = ServerBinary::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const std::vector<std::string> programs = absl::StrSplit(examples, ':');
  for (const std::string& program : programs) EXPECT_EQ(ExitStatusOf(program, (*server)->target()), 0) << program;
}

}  // namespace
}  // namespace tensord
