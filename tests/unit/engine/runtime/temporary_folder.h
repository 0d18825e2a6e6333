#ifndef TENSORD_TESTS_UNIT_ENGINE_RUNTIME_TEMPORARY_FOLDER_H_
#define TENSORD_TESTS_UNIT_ENGINE_RUNTIME_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tensord {

// A folder that goes with the object, and everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/tensord-unit.XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Of(const std::string& name) const { return path_ + "/" + name; }
  // The names in it, sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Of(name), std::ios::binary).rdbuf();
    return text.str();
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Of(name), std::ios::binary) << bytes;
  }

 private:
  std::string path_;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_UNIT_ENGINE_RUNTIME_TEMPORARY_FOLDER_H_
