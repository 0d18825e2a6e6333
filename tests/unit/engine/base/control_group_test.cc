#include "engine/base/control_group.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace tensord {
namespace {

constexpr char kSecondVersion[] = "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kFirstVersion[] =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

// A machine's /proc and /sys as files.
class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() {
    char path[] = "/tmp/tensord-unit.XXXXXX";
    EXPECT_NE(mkdtemp(path), nullptr);
    root_ = path;
  }
  ~ControlGroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(ControlGroupTest, NothingIsBoundedWhereNothingCanBeRead) {
  EXPECT_FALSE(ControlGroupMemoryBytes(root_).has_value());
  EXPECT_FALSE(ControlGroupProcessors(root_).has_value());
  EXPECT_EQ(UsableMemoryBytes(root_), static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  EXPECT_GE(UsableProcessors(root_), 1);
}

TEST_F(ControlGroupTest, TheLeastUpTheHierarchyCounts) {
  Write("/proc/self/cgroup", "0::/system.slice/tensord.service\n");
  Write("/proc/self/mountinfo", kSecondVersion);
  Write("/sys/fs/cgroup/system.slice/tensord.service/memory.max", "max\n");
  Write("/sys/fs/cgroup/system.slice/tensord.service/cpu.max", "max 100000\n");
  EXPECT_FALSE(ControlGroupMemoryBytes(root_).has_value());
  EXPECT_FALSE(ControlGroupProcessors(root_).has_value());
  Write("/sys/fs/cgroup/system.slice/memory.max", "1048576\n");
  Write("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 1048576);
  EXPECT_EQ(UsableMemoryBytes(root_), 1048576);
  EXPECT_EQ(ControlGroupProcessors(root_), 2) << "one and a half, rounded up";
  Write("/sys/fs/cgroup/system.slice/tensord.service/memory.max", "524288\n");
  Write("/sys/fs/cgroup/system.slice/tensord.service/cpu.max", "50000 100000\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 524288);
  EXPECT_EQ(ControlGroupProcessors(root_), 1);
  EXPECT_EQ(UsableProcessors(root_), 1);
  Write("/sys/fs/cgroup/memory.max", "4096\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 4096) << "in a container its group is the root";
}

TEST_F(ControlGroupTest, TheFirstVersionIsReadToo) {
  Write("/proc/self/cgroup", "4:memory:/box/a\n2:cpu,cpuacct:/box\n0::/\n");
  Write("/proc/self/mountinfo", kFirstVersion);
  Write("/sys/fs/cgroup/memory/box/a/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(ControlGroupMemoryBytes(root_).has_value());
  EXPECT_FALSE(ControlGroupProcessors(root_).has_value());
  Write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2097152\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 2097152);
  EXPECT_EQ(ControlGroupProcessors(root_), 3);
}

// A container whose /proc tells the host's names while its mount shows its own group as the root of all.
TEST_F(ControlGroupTest, MountsThatShowPartOfTheHierarchyAreUnderstood) {
  Write("/proc/self/cgroup", "4:memory:/docker/0123\n");
  Write("/proc/self/mountinfo", "35 31 0:32 /docker/0123 /cg/memory ro - cgroup cgroup rw,memory\n");
  Write("/cg/memory/memory.limit_in_bytes", "12345\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 12345);
  Write("/proc/self/cgroup", "4:memory:/docker/0123/inner\n");
  Write("/cg/memory/inner/memory.limit_in_bytes", "1234\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 1234);
  Write("/proc/self/cgroup", "4:memory:/elsewhere\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 12345);
}

TEST_F(ControlGroupTest, WithoutMountsTheUsualPathsAreTried) {
  Write("/proc/self/cgroup", "4:memory:/a\n2:cpu:/\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "777\n");
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(ControlGroupMemoryBytes(root_), 777);
  EXPECT_EQ(ControlGroupProcessors(root_), 1);
}

TEST_F(ControlGroupTest, NonsenseBoundsNothing) {
  Write("/proc/self/cgroup", "x\n0::\n:::::\n");
  Write("/proc/self/mountinfo", std::string("a - b\n - \n1 2 3 4 5 - cgroup2\n") + kSecondVersion);
  for (const char* text : {"", "many", "-5", "0", "99999999999999999999", "1 2 3"}) {
    Write("/sys/fs/cgroup/memory.max", text);
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(ControlGroupMemoryBytes(root_).has_value()) << text;
    EXPECT_FALSE(ControlGroupProcessors(root_).has_value()) << text;
  }
}

}  // namespace
}  // namespace tensord
