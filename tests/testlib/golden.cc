#include "tests/testlib/golden.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tensord {
namespace {

constexpr absl::string_view kCaseMark = "==== ";
constexpr absl::string_view kExpectedMark = "----";

}  // namespace

absl::StatusOr<GoldenFile> ReadGoldenFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream.is_open()) return absl::NotFoundError(absl::StrCat("cannot open ", path.string()));
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();

  GoldenFile file;
  std::string* part = &file.comment;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (absl::StartsWith(line, kCaseMark)) {
      file.cases.push_back({.name = line.substr(kCaseMark.size()), .line = static_cast<int>(i) + 1});
      part = &file.cases.back().input;
    } else if (line == kExpectedMark && !file.cases.empty()) {
      part = &file.cases.back().expected;
    } else {
      absl::StrAppend(part, line, "\n");
    }
  }
  if (file.cases.empty()) return absl::InvalidArgumentError(absl::StrCat(path.string(), " has no case"));
  for (const GoldenCase& c : file.cases) {
    if (c.name.empty() || c.input.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ":", c.line, ": a case without a name or an input"));
    }
  }
  return file;
}

absl::Status WriteGoldenFile(const std::filesystem::path& path, const GoldenFile& file) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << file.comment;
  for (const GoldenCase& c : file.cases) {
    stream << kCaseMark << c.name << "\n" << c.input << kExpectedMark << "\n" << c.expected;
  }
  stream.close();
  return stream.good() ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path.string()));
}

std::vector<std::filesystem::path> GoldenFilesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool UpdateGolden() { return std::getenv("TENSORD_UPDATE_GOLDEN") != nullptr; }

}  // namespace tensord
