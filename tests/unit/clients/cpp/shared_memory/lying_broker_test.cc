// Clients of shared memory whose server says one thing of a region and gives another.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tensord/shared_memory.h"
#include "tensord/v1/shared_memory.pb.h"
#include "tests/unit/engine/runtime/temporary_folder.h"

namespace tensord::client {
namespace {

constexpr size_t kRegionBytes = 4096;

// The least descriptor that is free: the same as before where none is left open.
int NextDescriptor() {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  return next;
}

class LyingBrokerTest : public ::testing::Test {
 protected:
  LyingBrokerTest() : listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const std::string path = folder_.path() + "/m";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    auto memory = SharedMemory::Connect(path, "");
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  }
  ~LyingBrokerTest() override {
    close(connection_);
    close(listener_);
  }

  // Asks for a page, which the broker answers with `reply` and `given`. A region that is given back is taken back.
  absl::Status Ask(const v1::SharedMemoryReply& reply, const std::vector<int>& given) {
    auto asked = std::async(std::launch::async, [this] { return memory_->Allocate(kRegionBytes).status(); });
    char request[4096];
    EXPECT_GT(recv(connection_, request, sizeof(request), 0), 0);
    Answer(reply, given);
    for (const int descriptor : given) close(descriptor);
    while (asked.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      if (recv(connection_, request, sizeof(request), MSG_DONTWAIT) > 0) Answer(v1::SharedMemoryReply(), {});
    }
    return asked.get();
  }
  static int Memory(off_t size_bytes, int seals) {
    const int memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(memory, size_bytes), 0);
    EXPECT_EQ(fcntl(memory, F_ADD_SEALS, seals), 0);
    return memory;
  }
  static v1::SharedMemoryReply Page() {
    v1::SharedMemoryReply reply;
    reply.set_region("r");
    reply.set_byte_count(kRegionBytes);
    return reply;
  }

 private:
  void Answer(const v1::SharedMemoryReply& reply, const std::vector<int>& given) const {
    std::string bytes = reply.SerializeAsString();
    if (bytes.empty()) bytes.assign({'\x18', '\0'});  // an empty packet would be an end
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!given.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(given.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(given.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), given.data(), given.size() * sizeof(int));
    }
    EXPECT_GT(sendmsg(connection_, &message, MSG_NOSIGNAL), 0);
  }

  TemporaryFolder folder_;
  const int listener_;
  int connection_ = -1;
  std::shared_ptr<SharedMemory> memory_;
};

TEST_F(LyingBrokerTest, ARegionAsItShouldBeIsTaken) {
  const absl::Status taken = Ask(Page(), {Memory(kRegionBytes, F_SEAL_SHRINK)});
  EXPECT_TRUE(taken.ok()) << taken;
}

// A write to its end would end the process by SIGBUS.
TEST_F(LyingBrokerTest, ARegionThatIsSmallerThanItsServerSaysIsRefused) {
  EXPECT_TRUE(absl::IsInternal(Ask(Page(), {Memory(kRegionBytes - 1, F_SEAL_SHRINK)})));
}

TEST_F(LyingBrokerTest, ARegionThatMayStillShrinkIsRefused) {
  EXPECT_TRUE(absl::IsInternal(Ask(Page(), {Memory(kRegionBytes, F_SEAL_GROW)})));
}

TEST_F(LyingBrokerTest, NoDescriptorOfAnAnswerStaysOpen) {
  const int before = NextDescriptor();
  const auto memory = [] { return Memory(kRegionBytes, F_SEAL_SHRINK); };
  Ask(Page(), {memory(), memory(), memory()}).IgnoreError();
  EXPECT_EQ(NextDescriptor(), before);
}

TEST_F(LyingBrokerTest, AnErrorWithoutACodeIsAnErrorAllTheSame) {
  v1::SharedMemoryReply reply;
  reply.mutable_error()->set_message("no reason");
  EXPECT_TRUE(absl::IsUnknown(Ask(reply, {})));
}

}  // namespace
}  // namespace tensord::client
