// The socket that hands out shared memory: who gets some, how much, and for how long.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <latch>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/fingerprint.h"
#include "engine/base/refusal.h"
#include "gtest/gtest.h"
#include "server/shared_memory/broker_client.h"
#include "tests/e2e/server/shared_memory/shared_memory_fixture.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

TEST(RegionStoreTest, RegionsOfAllTenantsAreCounted) {
  server::RegionStore store({.regions = 2});
  ASSERT_TRUE(store.Allocate("a", 1).ok());
  const auto second = store.Allocate("b", 1);
  ASSERT_TRUE(second.ok());
  const auto third = store.Allocate("c", 1);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(third.status().message().find("shared_memory.regions"), absl::string_view::npos) << third.status();
  store.Remove((*second)->id());
}

TEST(RegionStoreTest, RegionsAndTensorsShareOneLimit) {
  const auto memory = HostBufferPool::Create(1 << 20, 1 << 20, "cpu.tensor_bytes");
  server::RegionStore store({}, memory);
  auto region = store.Allocate("a", 600 << 10);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_FALSE(memory->Allocate(512 << 10).ok()) << "the region is in it";
  const auto tensor = memory->Allocate(256 << 10);
  ASSERT_TRUE(tensor.ok());
  const RefusalDetail detail = *DetailOf(store.Allocate("b", 300 << 10).status());
  EXPECT_EQ(detail.reason, "OUT_OF_MEMORY");
  EXPECT_EQ(detail.limit, "cpu.tensor_bytes");
  EXPECT_EQ(store.out_of_memory(), 1);
  EXPECT_EQ(store.stats().regions, 1) << "what is refused takes nothing";
  store.Remove((*region)->id());
  region = store.Allocate("a", 4 << 10);  // the first one is gone
  EXPECT_TRUE(store.Allocate("b", 300 << 10).ok());
  EXPECT_TRUE(memory->Allocate(256 << 10).ok());
}

TEST(RegionStoreTest, WhatIsBeyondLowerLimitsStaysAndNothingIsAdded) {
  server::RegionStore store({.bytes = 1 << 20});
  const auto region = store.Allocate("a", 8192);
  ASSERT_TRUE(region.ok());
  store.SetLimits({.region_bytes = 4096, .bytes = 4096});
  EXPECT_TRUE(store.Find("a", (*region)->id(), 0, 8192).ok());
  EXPECT_EQ(DetailOf(store.Allocate("a", 8192).status())->limit, "shared_memory.region_bytes");
  EXPECT_EQ(DetailOf(store.Allocate("a", 1).status())->limit, "shared_memory.bytes");
  store.Remove((*region)->id());
}

TEST(BrokerRefusalTest, TheServersOwnFaultIsNotTheClients) {
  using server::BrokerRefusal;
  EXPECT_EQ(server::KindOf(Refuse(Refusal::kInternal, "no random numbers")), BrokerRefusal::kInternal);
  EXPECT_EQ(server::KindOf(Refuse(Refusal::kMalformedMessage, "no packet")), BrokerRefusal::kMalformed);
  EXPECT_EQ(server::KindOf(Refuse(Refusal::kOutOfMemory, "no pages")), BrokerRefusal::kMemory);
  EXPECT_EQ(server::KindOf(Refuse(Refusal::kRateLimited, "too often")), BrokerRefusal::kLimit);
}

class MemoryBrokerTest : public SharedMemoryFixture {
 protected:
  bool NothingIsLeft() {
    return WaitFor([&] { return Stats().regions == 0 && Stats().bytes == 0; });
  }
  double Refused(const std::string& reason) { return server_->Metric("tensord_shared_memory_refusals_total", reason); }
};

TEST_F(MemoryBrokerTest, ARegionIsZeroedAndItsSizeIsSealed) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB + 1);
  EXPECT_EQ(region.id().size(), 32u);
  EXPECT_EQ(region.size_bytes() % sysconf(_SC_PAGESIZE), 0);
  EXPECT_EQ(std::string(region.bytes(), 64), std::string(64, '\0'));
  EXPECT_EQ(fcntl(region.descriptor(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(ftruncate(region.descriptor(), 0), 0) << "what the server has mapped would be gone";
  EXPECT_NE(ftruncate(region.descriptor(), 2 * region.size_bytes()), 0);
  EXPECT_EQ(Stats().regions, 1);
  EXPECT_EQ(Stats().bytes, region.size_bytes());
  EXPECT_EQ(broker.Free(region.id()), "OK");
  EXPECT_EQ(broker.Free(region.id()), "REGION_UNKNOWN");
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(MemoryBrokerTest, TheSocketIsItsOwnersAlone) {
  Start();
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(MemoryBrokerTest, WhoClosesTheConnectionGivesItsRegionsBack) {
  Start();
  BrokerSocket other(path());
  const BrokerSocket::Region kept = other.Take(kMiB);
  {
    BrokerSocket broker(path());
    const BrokerSocket::Region one = broker.Take(kMiB), two = broker.Take(3 * kMiB);
    EXPECT_EQ(Stats().regions, 3);
    EXPECT_EQ(other.Free(one.id()), "REGION_UNKNOWN") << "another connection's";
    std::memset(two.bytes(), 1, static_cast<size_t>(two.size_bytes()));
    broker.Close();
    EXPECT_TRUE(WaitFor([&] { return Stats().regions == 1; }));
    EXPECT_EQ(two.bytes()[0], 0) << "a mapping that is kept holds none of the server's pages";
  }
  EXPECT_EQ(Stats().bytes, kMiB);
}

TEST_F(MemoryBrokerTest, AClientThatIsKilledLeavesNothing) {
  Start();
  std::array<int, 2> told{};
  ASSERT_EQ(pipe2(told.data(), O_CLOEXEC), 0);
  v1::SharedMemoryRequest request;
  request.mutable_allocate()->set_byte_count(kMiB);
  const std::string packet = request.SerializeAsString();
  const pid_t child = fork();
  if (child == 0) {
    BrokerSocket* const mine = new BrokerSocket(path());  // never closed
    int descriptor = -1;
    const v1::SharedMemoryReply reply = mine->Ask(packet, &descriptor);
    const char ok = reply.has_error() ? '0' : '1';
    if (write(told[1], &ok, 1) != 1) _exit(1);
    while (true) pause();
  }
  char ok = 0;
  ASSERT_EQ(read(told[0], &ok, 1), 1);
  EXPECT_EQ(ok, '1');
  EXPECT_EQ(Stats().regions, 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(NothingIsLeft());
  close(told[0]);
  close(told[1]);
}

TEST_F(MemoryBrokerTest, WhoIsRefusedReadsWhy) {
  Start({"shared_memory.connections=1"});
  BrokerSocket first(path());
  ASSERT_EQ(first.Allocate(1), "OK");
  // The request is on its way while the connection is refused; what was not read must not take the refusal back.
  for (int i = 0; i < 300; ++i) {
    BrokerSocket other(path());
    v1::SharedMemoryReply reply;
    ASSERT_EQ(other.Allocate(1, "", &reply), "LIMIT_EXCEEDED") << i;
    EXPECT_EQ(reply.error().detail().limit(), "shared_memory.connections");
  }
  EXPECT_EQ(first.Allocate(1), "OK");
}

TEST_F(MemoryBrokerTest, AWaitThatTheSystemRefusesIsTriedAgain) {
  Start();
  BrokerSocket broker(path());
  ASSERT_EQ(broker.Allocate(1), "OK");
  // Sanitizers need descriptors to look at an object's type, and have seen those of a refusal then.
  ASSERT_EQ(broker.Allocate(-1), "ATTRIBUTE_INVALID");
  EXPECT_EQ(Refused("internal"), 0);
  rlimit given{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &given), 0);
  v1::SharedMemoryRequest request;
  request.mutable_allocate()->set_byte_count(1 << 20);
  // Wakes the broker, if that waits already. It answers now, without a descriptor for a region, or when it may wait.
  std::latch begun(1), may_ask(1), may_end(1);
  std::jthread asking([&, packet = request.SerializeAsString()] {
    begun.count_down();
    may_ask.wait();
    int descriptor = -1;
    broker.Ask(packet, &descriptor);
    if (descriptor >= 0) close(descriptor);
    may_end.wait();
  });
  begun.wait();
  // Poll looks at the bound: it refuses to wait for more.
  const rlimit none{.rlim_cur = 1, .rlim_max = given.rlim_max};
  const int bounded = setrlimit(RLIMIT_NOFILE, &none);
  may_ask.count_down();
  const bool told = WaitFor([&] { return Refused("internal") >= 1; });
  const int restored = setrlimit(RLIMIT_NOFILE, &given);
  may_end.count_down();
  asking.join();
  EXPECT_EQ(restored, 0);
  EXPECT_EQ(bounded, 0);
  EXPECT_TRUE(told);
  BrokerSocket another(path());
  EXPECT_EQ(another.Allocate(1), "OK");
}

TEST_F(MemoryBrokerTest, EachLimitIsNamed) {
  Start({"shared_memory.region_bytes=4194304", "shared_memory.tenant_bytes=8388608", "shared_memory.bytes=6291456",
         "shared_memory.tenant_regions=3"});
  BrokerSocket broker(path());
  v1::SharedMemoryReply reply;
  EXPECT_EQ(broker.Allocate(5 * kMiB, "", &reply), "LIMIT_EXCEEDED");
  EXPECT_EQ(reply.error().detail().limit(), "shared_memory.region_bytes");
  EXPECT_EQ(reply.error().detail().limit_value(), 4 * kMiB);
  EXPECT_EQ(reply.error().detail().actual_value(), 5 * kMiB);
  EXPECT_EQ(broker.Allocate(std::numeric_limits<int64_t>::max(), "", &reply), "LIMIT_EXCEEDED");
  for (const int64_t none : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(broker.Allocate(none), "ATTRIBUTE_INVALID");
  }
  EXPECT_EQ(broker.Allocate(4 * kMiB), "OK");
  EXPECT_EQ(broker.Allocate(4 * kMiB, "", &reply), "LIMIT_EXCEEDED");
  EXPECT_EQ(reply.error().detail().limit(), "shared_memory.bytes");
  EXPECT_EQ(reply.error().detail().limit_value(), 6 * kMiB);
  EXPECT_EQ(reply.error().detail().actual_value(), 8 * kMiB);
  EXPECT_EQ(broker.Allocate(1), "OK");
  EXPECT_EQ(broker.Allocate(1), "OK");
  EXPECT_EQ(broker.Allocate(1, "", &reply), "LIMIT_EXCEEDED");
  EXPECT_EQ(reply.error().detail().limit(), "shared_memory.tenant_regions");
  EXPECT_EQ(reply.error().detail().limit_value(), 3);
  EXPECT_EQ(reply.error().detail().actual_value(), 4);
  EXPECT_EQ(Refused("limit"), 4);
  EXPECT_EQ(server_->Metric("tensord_shared_memory_regions", ""), -1) << "no label";
}

TEST_F(MemoryBrokerTest, ATenantsBytesAreLimited) {
  Start({"shared_memory.tenant_bytes=1048576"});
  BrokerSocket one(path()), two(path());
  EXPECT_EQ(one.Allocate(kMiB), "OK");
  v1::SharedMemoryReply reply;
  EXPECT_EQ(two.Allocate(1, "", &reply), "LIMIT_EXCEEDED");
  EXPECT_EQ(reply.error().detail().limit(), "shared_memory.tenant_bytes");
  EXPECT_EQ(reply.error().detail().limit_value(), kMiB);
  EXPECT_GT(reply.error().detail().actual_value(), kMiB);
  one.Close();
  EXPECT_TRUE(WaitFor([&] { return two.Allocate(1) == "OK"; }));
}

TEST_F(MemoryBrokerTest, ConnectionsAreLimited) {
  Start({"shared_memory.connections=2"});
  BrokerSocket one(path()), two(path());
  EXPECT_EQ(one.Allocate(1), "OK");
  EXPECT_EQ(two.Allocate(1), "OK");
  BrokerSocket three(path());
  int descriptor = -1;
  const v1::SharedMemoryReply told = three.Read(&descriptor);
  EXPECT_EQ(told.error().detail().limit(), "shared_memory.connections");
  EXPECT_EQ(told.error().detail().limit_value(), 2);
  EXPECT_EQ(told.error().detail().actual_value(), 3);
  EXPECT_EQ(three.Read(&descriptor).ByteSizeLong(), 0u) << "and it is hung up on";
  EXPECT_EQ(one.Allocate(1), "OK");
}

TEST_F(MemoryBrokerTest, WhoMayConnectChanges) {
  Start();
  const auto mode = [this] {
    struct stat info {};
    EXPECT_EQ(stat(path().c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  BrokerSocket one(path()), two(path());
  EXPECT_EQ(one.Allocate(1), "OK");
  EXPECT_EQ(two.Allocate(1), "OK");
  EXPECT_EQ(mode(), 0600u);
  server::ServerConfig next = server_->daemon().config();
  next.mutable_shared_memory()->set_connections(1);
  next.mutable_shared_memory()->add_uids(12345);
  server_->daemon().Reload(next);
  EXPECT_EQ(mode(), 0666u);
  EXPECT_EQ(one.Allocate(1), "OK") << "who is connected stays";
  int descriptor = -1;
  BrokerSocket three(path());
  EXPECT_EQ(three.Read(&descriptor).error().detail().limit_value(), 1);
  server_->daemon().Reload(server_->daemon().config());
  EXPECT_EQ(mode(), 0600u);
  BrokerSocket four(path());
  EXPECT_EQ(four.Allocate(1), "OK");
}

TEST_F(MemoryBrokerTest, BrokenPacketsAreAnsweredAndHurtNobody) {
  Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(1);
  int descriptor = -1;
  EXPECT_EQ(broker.Ask("\xff\xff\xff", &descriptor).error().detail().reason(), "MALFORMED_MESSAGE");
  EXPECT_EQ(broker.Ask(std::string(100000, 'x'), &descriptor).error().detail().reason(), "MALFORMED_MESSAGE");
  v1::SharedMemoryRequest nothing;
  nothing.set_authorization("Bearer x");
  EXPECT_EQ(broker.Ask(nothing.SerializeAsString(), &descriptor).error().detail().reason(), "UNSUPPORTED_REQUEST");
  EXPECT_EQ(broker.Free("no region"), "REGION_UNKNOWN");
  EXPECT_EQ(Stats().regions, 1);
  EXPECT_EQ(broker.Free(region.id()), "OK");
  EXPECT_EQ(Refused("malformed"), 4);
}

TEST_F(MemoryBrokerTest, ManyAskAtOnce) {
  Start();
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      BrokerSocket broker(path());
      for (int round = 0; round < 20; ++round) {
        const BrokerSocket::Region region = broker.Take(kMiB * (i % 3 + 1));
        EXPECT_EQ(region.bytes()[region.size_bytes() - 1], '\0');
        if (round % 2 == 0) {
          EXPECT_EQ(broker.Free(region.id()), "OK");
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(MemoryBrokerTest, ATenantAsksNoMoreOftenThanItMayCall) {
  Start({"scheduling.tenant_requests_per_second=1", "scheduling.tenant_burst=1"});
  BrokerSocket broker(path());
  v1::SharedMemoryReply reply;
  // The second within the second; where the machine takes longer, others follow.
  int asked = 0;
  while (asked < 1000 && broker.Allocate(1, "", &reply) == "OK") ++asked;
  EXPECT_EQ(reply.error().detail().reason(), "RATE_LIMITED");
  EXPECT_EQ(reply.error().detail().limit(), "scheduling.tenant_requests_per_second");
  EXPECT_EQ(Refused("limit"), 1);
}

TEST_F(MemoryBrokerTest, AsksForATokenWhereCallsDo) {
  PrivateFolder secrets;
  const std::string file = secrets.Write(
      "callers", "a execute " + Fingerprint::Of("token-a").ToHex() + "\nb read " + Fingerprint::Of("token-b").ToHex());
  Start({"identity.file=" + file, "identity.trust_unix_sockets=false"});
  BrokerSocket broker(path());
  EXPECT_EQ(broker.Allocate(1), "UNAUTHENTICATED");
  EXPECT_EQ(broker.Allocate(1, "Bearer nobody's"), "UNAUTHENTICATED");
  EXPECT_EQ(broker.Allocate(1, "Bearer token-b"), "PERMISSION_DENIED") << "b may not execute";
  EXPECT_EQ(broker.Allocate(1, "Bearer token-a"), "OK");
  EXPECT_EQ(Refused("caller"), 3);
}

TEST_F(MemoryBrokerTest, OtherUsersAreNamedOrGetNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  constexpr uid_t kNobody = 65534, kNamed = 65533;
  Start({"shared_memory.uids=65533"});
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  // 0: it got memory; 1: it got none; 2: it could not connect. Why it got none may be lost where the server hangs up.
  const auto outcome = [&](uid_t user) {
    const pid_t child = fork();
    if (child == 0) {
      if (setresuid(user, user, user) != 0) _exit(9);
      BrokerSocket broker(path());
      if (!broker.connected()) _exit(2);
      int descriptor = -1;
      v1::SharedMemoryRequest request;
      request.mutable_allocate()->set_byte_count(1);
      broker.Ask(request.SerializeAsString(), &descriptor);
      _exit(descriptor >= 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(outcome(kNamed), 0);
  EXPECT_EQ(outcome(kNobody), 1);
  EXPECT_EQ(Refused("user"), 1);
}

TEST_F(MemoryBrokerTest, AServerThatEndsLeavesWhatItsClientsHave) {
  InProcessServer& server = Start();
  BrokerSocket broker(path());
  const BrokerSocket::Region region = broker.Take(kMiB);
  std::memset(region.bytes(), 7, static_cast<size_t>(region.size_bytes()));
  server.RequestStop();
  server.WaitUntilStopped();
  int descriptor = -1;
  EXPECT_EQ(broker.Read(&descriptor).ByteSizeLong(), 0u);
  EXPECT_EQ(region.bytes()[kMiB - 1], 7) << "results that its client still reads";
  EXPECT_NE(access(path().c_str(), F_OK), 0) << "the socket is removed";
}

TEST_F(MemoryBrokerTest, ASocketOfAServerThatIsGoneIsTakenAndThatOfALivingOneIsNot) {
  Start();
  const auto second = server::Daemon::Start([&] {
    server::ServerConfig config;
    config.add_listen("unix:" + folder_.path() + "/other");
    config.mutable_shared_memory()->set_listen("unix:" + path());
    return config;
  }());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  BrokerSocket broker(path());
  EXPECT_EQ(broker.Allocate(1), "OK");
}

}  // namespace
}  // namespace tensord
