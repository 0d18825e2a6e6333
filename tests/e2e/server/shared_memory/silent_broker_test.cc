// Clients of shared memory whose server takes the connection, and then says nothing, or says it late.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/shared_memory/broker_connection.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tensord/v1/shared_memory.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using client::BrokerConnection;

constexpr absl::Duration kShort = absl::Milliseconds(50);

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// A socket that says what the test says. One connection; the system takes it, whether the test looks at it or not.
class SilentBroker {
 public:
  explicit SilentBroker(const std::string& path)
      : path_(path), listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = AddressOf(path);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
  }
  ~SilentBroker() {
    if (connection_ >= 0) close(connection_);
    close(listener_);
    unlink(path_.c_str());
  }
  SilentBroker(const SilentBroker&) = delete;
  SilentBroker& operator=(const SilentBroker&) = delete;

  // "allocate N" or "free NAME": the next request.
  std::string Read() {
    if (connection_ < 0) connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    char bytes[4096];
    const ssize_t got = recv(connection_, bytes, sizeof(bytes), 0);
    v1::SharedMemoryRequest request;
    if (got <= 0 || !request.ParseFromArray(bytes, static_cast<int>(got))) return "nothing";
    return request.has_free() ? "free " + request.free().region()
                              : "allocate " + std::to_string(request.allocate().byte_count());
  }
  void Answer(const std::string& region) { Send(region, -1); }
  void Give(const std::string& region) {
    const int memory = memfd_create("test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(memory, 4096), 0);
    Send(region, memory);
    close(memory);
  }

 private:
  void Send(const std::string& region, int descriptor) {
    v1::SharedMemoryReply reply;
    reply.set_region(region);
    reply.set_byte_count(4096);
    std::string bytes = reply.SerializeAsString();
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
    }
    EXPECT_GT(sendmsg(connection_, &message, MSG_NOSIGNAL), 0);
  }

  const std::string path_;
  const int listener_;
  int connection_ = -1;
};

class SilentBrokerTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/m"; }
  static absl::Time Soon() { return absl::Now() + kShort; }
  static void ExpectRegion(const absl::StatusOr<BrokerConnection::Region>& region, const std::string& id) {
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(region->id, id);
    close(region->descriptor);
  }

  TemporaryFolder folder_;
};

TEST_F(SilentBrokerTest, AWaitEndsAndCostsNobodyElseAny) {
  SilentBroker broker(path());
  const auto memory = client::SharedMemory::Connect(path(), "");
  ASSERT_TRUE(memory.ok()) << memory.status();
  const absl::Status late = (*memory)->Allocate(4096, Soon()).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_NE(late.message().find(path()), absl::string_view::npos) << late;
  // At once: a second wait would be late too.
  const absl::Status owed = (*memory)->Allocate(4096).status();
  EXPECT_TRUE(absl::IsUnavailable(owed)) << owed;
}

TEST_F(SilentBrokerTest, AnAnswerThatComesLateIsGivenBackAndIsNobodyElses) {
  SilentBroker broker(path());
  const auto connection = BrokerConnection::Connect(path(), "", absl::InfiniteFuture());
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded((*connection)->Allocate(1000, Soon()).status()));
  (*connection)->Free("before");
  EXPECT_EQ(broker.Read(), "allocate 1000");
  broker.Give("late");
  auto second = std::async(std::launch::async, [&] { return (*connection)->Allocate(2000, absl::InfiniteFuture()); });
  EXPECT_EQ(broker.Read(), "allocate 2000");
  broker.Give("second");
  for (const std::string region : {"late", "before"}) {
    EXPECT_EQ(broker.Read(), "free " + region);
    broker.Answer(region);
  }
  ExpectRegion(second.get(), "second");
}

TEST_F(SilentBrokerTest, WhoWaitsForAnothersRequestWaitsNoLongerThanItsDeadline) {
  SilentBroker broker(path());
  const auto connection = BrokerConnection::Connect(path(), "", absl::InfiniteFuture());
  ASSERT_TRUE(connection.ok()) << connection.status();
  auto first = std::async(std::launch::async, [&] { return (*connection)->Allocate(1000, absl::InfiniteFuture()); });
  EXPECT_EQ(broker.Read(), "allocate 1000");
  EXPECT_TRUE(absl::IsDeadlineExceeded((*connection)->Allocate(2000, Soon()).status()));
  (*connection)->Free("unwanted");  // waits for nothing: the other one sends it
  broker.Give("first");
  EXPECT_EQ(broker.Read(), "free unwanted");
  broker.Answer("unwanted");
  ExpectRegion(first.get(), "first");
}

TEST_F(SilentBrokerTest, AConnectionThatNobodyTakesIsGivenUp) {
  SilentBroker broker(path());
  const sockaddr_un address = AddressOf(path());
  std::vector<int> others;
  for (bool has_room = true; has_room;) {
    others.push_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    has_room = connect(others.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  const absl::Status status = client::SharedMemory::Connect(path(), "", Soon()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const int other : others) close(other);
}

TEST_F(SilentBrokerTest, TensorsGoInMessagesThen) {
  InProcessServer server({"shared_memory.listen=unix:" + path()});
  ASSERT_EQ(unlink(path().c_str()), 0);
  const auto tensor = client::HostTensor::FromVector(std::vector<float>(1 << 15, 2.0F), {1 << 15});
  const auto other = client::Client::Connect({.target = server.target()});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Execute(DoubleGraph(), {*tensor}).ok());  // compiles, which has no deadline
  SilentBroker broker(path());
  const auto client = client::Client::Connect({.target = server.target(), .shared_memory = true});
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_NE((*client)->shared_memory(), nullptr);
  client::ExecuteOptions options;
  options.deadline = absl::Seconds(4);  // half of it goes by
  const auto result = (*client)->Execute(DoubleGraph(), {*tensor}, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reinterpret_cast<const float*>(result->outputs[0].bytes())[7], 4.0F);
  EXPECT_EQ(broker.Read().substr(0, 8), "allocate");
}

}  // namespace
}  // namespace tensord
