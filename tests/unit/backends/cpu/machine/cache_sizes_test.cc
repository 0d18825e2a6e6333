#include "backends/cpu/machine/cache_sizes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tensord::cpu {
namespace {

class CacheFolder {
 public:
  CacheFolder() : path_(std::filesystem::path(testing::TempDir()) / "caches") { std::filesystem::remove_all(path_); }
  ~CacheFolder() { std::filesystem::remove_all(path_); }

  void Add(int index, const std::string& level, const std::string& type, const std::string& size) {
    const std::filesystem::path cache = path_ / ("index" + std::to_string(index));
    std::filesystem::create_directories(cache);
    std::ofstream(cache / "level") << level << "\n";
    std::ofstream(cache / "type") << type << "\n";
    std::ofstream(cache / "size") << size << "\n";
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(CacheSizesTest, ReadsEachLevelsDataCache) {
  CacheFolder folder;
  folder.Add(0, "1", "Data", "48K");
  folder.Add(1, "1", "Instruction", "32K");
  folder.Add(2, "2", "Unified", "2048K");
  folder.Add(3, "3", "Unified", "30M");
  const CacheSizes sizes = ReadCacheSizes(folder.path());
  EXPECT_EQ(sizes.l1, 48 << 10);
  EXPECT_EQ(sizes.l2, 2 << 20);
  EXPECT_EQ(sizes.last_level, 30 << 20);
}

TEST(CacheSizesTest, TheLastLevelMayBeTheSecond) {
  CacheFolder folder;
  folder.Add(0, "1", "Data", "64K");
  folder.Add(1, "2", "Unified", "4096K");
  EXPECT_EQ(ReadCacheSizes(folder.path()).last_level, 4 << 20);
}

TEST(CacheSizesTest, WhatCannotBeReadKeepsItsDefault) {
  const CacheSizes defaults;
  EXPECT_EQ(ReadCacheSizes("/nowhere").last_level, defaults.last_level);
  CacheFolder folder;
  folder.Add(0, "1", "Data", "many");
  folder.Add(1, "two", "Unified", "1024K");
  folder.Add(2, "3", "Unified", "-5K");
  const CacheSizes sizes = ReadCacheSizes(folder.path());
  EXPECT_EQ(sizes.l1, defaults.l1);
  EXPECT_EQ(sizes.l2, defaults.l2);
  EXPECT_EQ(sizes.last_level, defaults.last_level);
}

}  // namespace
}  // namespace tensord::cpu
