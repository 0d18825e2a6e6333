#ifndef TENSORD_TESTS_TESTLIB_GOLDEN_H_
#define TENSORD_TESTS_TESTLIB_GOLDEN_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord {

// Golden files hold cases of an input and what it must give:
//
//   ==== name of the case
//   input
//   ----
//   expected output
//
// What stands before the first case is a comment.
struct GoldenCase {
  std::string name;
  std::string input;     // with its last line end
  std::string expected;  // likewise; empty where the file has none yet
  int line = 0;          // of the "====" line, from 1
};

struct GoldenFile {
  std::string comment;
  std::vector<GoldenCase> cases;
};

// Refused if there is no case, or one without a name or an input.
absl::StatusOr<GoldenFile> ReadGoldenFile(const std::filesystem::path& path);
absl::Status WriteGoldenFile(const std::filesystem::path& path, const GoldenFile& file);

// The .txt files below a folder, by name.
std::vector<std::filesystem::path> GoldenFilesIn(const std::filesystem::path& folder);

// Tells whether expected outputs are to be rewritten: `./dev update-golden` sets TENSORD_UPDATE_GOLDEN.
bool UpdateGolden();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GOLDEN_H_
