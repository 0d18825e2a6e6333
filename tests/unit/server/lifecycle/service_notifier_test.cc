#include "server/lifecycle/service_notifier.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

// A socket as systemd would listen on.
class ManagerSocket {
 public:
  explicit ManagerSocket(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0) << name;
  }
  ~ManagerSocket() { close(fd_); }
  // Waits for a message.
  std::string Receive() const {
    char bytes[256];
    const ssize_t size = recv(fd_, bytes, sizeof(bytes), 0);
    return size < 0 ? "" : std::string(bytes, static_cast<size_t>(size));
  }
  bool IsEmpty() const {
    char byte;
    return recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }

 private:
  const int fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

TEST(ServiceNotifierTest, TellsWhatHappens) {
  const std::string path = absl::StrCat(testing::TempDir(), "/notify-", getpid());
  for (const std::string& name : {path, absl::StrCat("@tensord-test-", getpid())}) {
    const ManagerSocket socket(name);
    ServiceNotifier manager({.socket = name});
    EXPECT_TRUE(manager.is_there());
    manager.Ready("serves");
    EXPECT_EQ(socket.Receive(), "READY=1\nSTATUS=serves");
    manager.Watch([] { FAIL() << "nobody asked for a watchdog"; });
    manager.Stopping("ends");
    EXPECT_EQ(socket.Receive(), "STOPPING=1\nSTATUS=ends");
  }
  unlink(path.c_str());
}

TEST(ServiceNotifierTest, WithoutAManagerNothingIsSent) {
  ServiceNotifier none({});
  EXPECT_FALSE(none.is_there());
  none.Ready("x");
  none.Watch([] { FAIL(); });
  ServiceNotifier gone({.socket = "/no/such/socket"});
  gone.Ready("x");
  ServiceNotifier long_name({.socket = std::string(500, 'x')});
  long_name.Ready("x");
}

TEST(ServiceNotifierTest, AProbeThatHangsIsNotReportedAsLife) {
  const std::string name = absl::StrCat("@tensord-watchdog-", getpid());
  const ManagerSocket socket(name);
  std::mutex mutex;
  std::condition_variable changed;
  int probes = 0;
  bool hangs = false;
  ServiceNotifier manager({.socket = name, .watchdog = absl::Milliseconds(2)});
  manager.Watch([&] {
    std::unique_lock<std::mutex> lock(mutex);
    if (++probes < 4) return;
    hangs = true;
    changed.notify_all();
    changed.wait(lock, [&] { return !hangs; });
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(socket.Receive(), "WATCHDOG=1");
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return hangs; });
    EXPECT_TRUE(socket.IsEmpty());
    hangs = false;
    probes = -1'000'000'000;
  }
  changed.notify_all();
  EXPECT_EQ(socket.Receive(), "WATCHDOG=1") << "it lives again";
}

TEST(ServiceNotifierTest, ReadsTheEnvironment) {
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_PID");
  unsetenv("WATCHDOG_USEC");
  EXPECT_EQ(ServiceNotifier::FromEnvironment().socket, "");
  setenv("NOTIFY_SOCKET", "@x", 1);
  setenv("WATCHDOG_USEC", "3000000", 1);
  EXPECT_EQ(ServiceNotifier::FromEnvironment().socket, "@x");
  EXPECT_EQ(ServiceNotifier::FromEnvironment().watchdog, absl::Seconds(3));
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceNotifier::FromEnvironment().watchdog, absl::Seconds(3));
  setenv("WATCHDOG_PID", absl::StrCat(getpid() + 1).c_str(), 1);
  EXPECT_EQ(ServiceNotifier::FromEnvironment().watchdog, absl::ZeroDuration()) << "it is meant for another process";
  unsetenv("WATCHDOG_PID");
  setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_EQ(ServiceNotifier::FromEnvironment().watchdog, absl::ZeroDuration());
  unsetenv("WATCHDOG_USEC");
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace tensord::server
