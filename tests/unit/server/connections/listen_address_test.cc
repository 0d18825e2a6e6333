#include "server/connections/listen_address.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/connections/same_place.h"

namespace tensord::server {
namespace {

class SocketFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/tensord-test.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/s";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  // A socket that is bound to the path; the caller closes it.
  int Bind() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  std::string folder_;
  std::string path_;
};

TEST(ListenAddressTest, ReadsBothKinds) {
  EXPECT_EQ(ParseListenAddress("unix:/a/b")->ToString(), "unix:/a/b");
  EXPECT_EQ(ParseListenAddress("unix:///a/b")->ToString(), "unix:/a/b");
  EXPECT_EQ(ParseListenAddress("127.0.0.1:4711")->ToString(), "127.0.0.1:4711");
  EXPECT_EQ(ParseListenAddress("[::1]:0")->ToString(), "[::1]:0");
  EXPECT_EQ(ParseListenAddress("localhost:1")->port, 1);
}

TEST(ListenAddressTest, RefusesWhatIsNoAddress) {
  for (const std::string wrong :
       {"", "unix:", "host", "host:", ":80", "host:65536", "host:-1", "host:http", "::1:80"}) {
    EXPECT_FALSE(ParseListenAddress(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(ParseListenAddress("unix:/" + std::string(200, 'a')).ok());
}

TEST(ListenAddressTest, KnowsWhatOtherMachinesReach) {
  for (const char* local : {"unix:/a", "localhost:1", "127.0.0.1:1", "127.1.2.3:1", "[::1]:1"}) {
    EXPECT_TRUE(ParseListenAddress(local)->is_local()) << local;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "127.example.org:1", "127.0.0.1.:1",
                           "127.:1", "127.0.0.256:1"}) {
    EXPECT_FALSE(ParseListenAddress(open)->is_local()) << open;
  }
}

bool AreSame(const std::string& a, const std::string& b) {
  const bool same = IsSamePlace(*ParseListenAddress(a), *ParseListenAddress(b));
  EXPECT_EQ(same, IsSamePlace(*ParseListenAddress(b), *ParseListenAddress(a))) << a << ", " << b;
  return same;
}

TEST(ListenAddressTest, KnowsWhatIsThePlaceOfAnother) {
  EXPECT_TRUE(AreSame("127.0.0.1:7", "127.0.0.1:7"));
  EXPECT_TRUE(AreSame("localhost:7", "127.0.0.1:7"));
  EXPECT_TRUE(AreSame("localhost:7", "[::1]:7"));
  EXPECT_TRUE(AreSame("0.0.0.0:7", "192.0.2.1:7"));
  EXPECT_TRUE(AreSame("[::]:7", "127.0.0.1:7"));
  EXPECT_TRUE(AreSame("[::1]:7", "[0:0::1]:7"));
  EXPECT_TRUE(AreSame("name:7", "name:7"));
  EXPECT_FALSE(AreSame("127.0.0.1:7", "127.0.0.1:8"));
  EXPECT_FALSE(AreSame("127.0.0.1:0", "127.0.0.1:0")) << "each gets a free one";
  EXPECT_FALSE(AreSame("127.0.0.1:7", "127.0.0.2:7"));
  EXPECT_FALSE(AreSame("127.0.0.1:7", "[::1]:7"));
  EXPECT_FALSE(AreSame("127.0.0.1:7", "unix:/7"));
  EXPECT_TRUE(AreSame("unix:/a/s", "unix:///a/b/../s"));
  EXPECT_FALSE(AreSame("unix:/a/s", "unix:/a/t"));
}

TEST_F(SocketFolder, LinksLeadToTheSamePlace) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(folder_.c_str(), link.c_str()), 0);
  EXPECT_TRUE(AreSame("unix:" + path_, "unix:" + link + "/s"));
  EXPECT_FALSE(AreSame("unix:" + path_, "unix:" + link + "/t"));
  unlink(link.c_str());
}

TEST_F(SocketFolder, AFreePathStaysFree) { EXPECT_TRUE(PrepareSocketPath(path_).ok()); }

TEST_F(SocketFolder, TheSocketOfADeadServerIsRemoved) {
  close(Bind());
  ASSERT_EQ(access(path_.c_str(), F_OK), 0);
  EXPECT_TRUE(PrepareSocketPath(path_).ok());
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(SocketFolder, TheSocketOfALivingServerIsLeftAlone) {
  const int fd = Bind();
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_EQ(PrepareSocketPath(path_).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
  close(fd);
}

TEST_F(SocketFolder, AFileIsLeftAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(PrepareSocketPath(path_).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace tensord::server
