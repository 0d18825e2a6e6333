#include "server/http/http_server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/peers/tcp_client.h"

namespace tensord::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::chrono::hours kNoHurry{1};

// Answers with method and path.
std::unique_ptr<HttpServer> Start(HttpServer::Options options, const std::string& host = "127.0.0.1", int port = 0) {
  absl::StatusOr<TcpListener> listener = TcpListener::Open(host, port);
  EXPECT_TRUE(listener.ok()) << listener.status();
  auto server = HttpServer::Start(*std::move(listener), options, [](const HttpRequest& request) {
    HttpResponse page;
    page.body = absl::StrCat(request.method, " ", request.path, "\n");
    return page;
  });
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string Ask(const HttpServer& server, absl::string_view request) {
  return TcpClient(server.listener().address()).Ask(request);
}

TEST(HttpServerTest, AnswersAndHangsUp) {
  const auto server = Start({.time_per_connection = kNoHurry});
  EXPECT_THAT(Ask(*server, kGet), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Ask(*server, kGet), EndsWith("\r\n\r\nGET /page\n"));
  EXPECT_THAT(Ask(*server, "HEAD /page HTTP/1.0\r\n\r\n"), EndsWith("Content-Length: 10\r\nConnection: close\r\n\r\n"));
  const std::string two = Ask(*server, std::string(kGet) + "GET /other HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(two, EndsWith("\r\n\r\nGET /page\n")) << "one request a connection";
}

TEST(HttpServerTest, RequestsComeInPieces) {
  const auto server = Start({.time_per_connection = kNoHurry});
  TcpClient client(server->listener().address());
  for (const char c : absl::string_view(kGet)) client.Send(absl::string_view(&c, 1));
  client.Finish();
  EXPECT_THAT(client.Receive(), EndsWith("GET /page\n"));
}

TEST(HttpServerTest, WhatIsNoRequestIsRefused) {
  const auto server = Start({.time_per_connection = kNoHurry});
  EXPECT_THAT(Ask(*server, "garbage\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, "\x16\x03\x01\x02"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(*server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 505 "));
  const std::string large = Ask(*server, "GET / HTTP/1.1\r\nX: " + std::string(3 * kMostHttpHeadBytes, 'x'));
  EXPECT_THAT(large, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(large, EndsWith("8192 bytes in all\n")) << "what was not read of the request takes nothing of the answer";
}

TEST(HttpServerTest, ClientsThatSendNoMore) {
  const auto server = Start({.time_per_connection = kNoHurry});
  TcpClient silent(server->listener().address()), unfinished(server->listener().address());
  silent.Finish();
  EXPECT_EQ(silent.Receive(), "");
  unfinished.Send("GET /page HTT");
  unfinished.Finish();
  EXPECT_THAT(unfinished.Receive(), StartsWith("HTTP/1.1 400 "));
}

TEST(HttpServerTest, StalledClientsKeepNobodyWaiting) {
  const auto server = Start({.time_per_connection = kNoHurry});
  std::vector<std::unique_ptr<TcpClient>> stalled;
  for (int i = 0; i < 20; ++i) {
    stalled.push_back(std::make_unique<TcpClient>(server->listener().address()));
    if (i % 2 == 0) stalled.back()->Send("GET /page HTTP/1.1\r\n");
  }
  EXPECT_THAT(Ask(*server, kGet), EndsWith("GET /page\n"));
  stalled[0]->Send("Host: a\r\n\r\n");
  EXPECT_THAT(stalled[0]->Receive(), EndsWith("GET /page\n")) << "late is not too late";
}

TEST(HttpServerTest, NobodyElseWaitsForAPageThatIsNotMadeAgainYet) {
  const auto server = Start({.time_per_connection = kNoHurry, .page = "/page", .page_interval = kNoHurry});
  EXPECT_THAT(Ask(*server, kGet), EndsWith("GET /page\n"));
  TcpClient waits(server->listener().address());
  waits.Send(kGet);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Ask(*server, "GET /probe HTTP/1.1\r\nHost: a\r\n\r\n"), EndsWith("GET /probe\n"));
  }
  EXPECT_THAT(Ask(*server, "POST /page HTTP/1.1\r\nHost: a\r\n\r\n"), EndsWith("POST /page\n"));
}

TEST(HttpServerTest, WhoWaitForAPageGetTheSame) {
  constexpr std::chrono::milliseconds kInterval{200};
  absl::StatusOr<TcpListener> listener = TcpListener::Open("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::atomic<int> made{0};
  const auto server = HttpServer::Start(*std::move(listener),
                                        {.time_per_connection = kNoHurry, .page = "/page", .page_interval = kInterval},
                                        [&made](const HttpRequest&) {
                                          HttpResponse page;
                                          page.body = absl::StrCat("page ", ++made, "\n");
                                          return page;
                                        });
  ASSERT_TRUE(server.ok()) << server.status();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < 3; ++k) EXPECT_THAT(Ask(**server, kGet), HasSubstr("\r\n\r\npage "));
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LE(made, 1 + (std::chrono::steady_clock::now() - begin) / kInterval);
  EXPECT_THAT(Ask(**server, "HEAD /page HTTP/1.0\r\n\r\n"), EndsWith("Connection: close\r\n\r\n"));
}

TEST(HttpServerTest, StalledReadersAndWritersRunOutOfTime) {
  constexpr size_t kMoreThanSocketsHold = size_t{64} << 20;
  absl::StatusOr<TcpListener> listener = TcpListener::Open("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto server = HttpServer::Start(*std::move(listener), {.time_per_connection = std::chrono::milliseconds(100)},
                                        [](const HttpRequest&) {
                                          HttpResponse page;
                                          page.body = std::string(kMoreThanSocketsHold, 'x');
                                          return page;
                                        });
  ASSERT_TRUE(server.ok()) << server.status();
  TcpClient reads_nothing((*server)->listener().address());
  reads_nothing.Send(kGet);
  TcpClient sends_nothing((*server)->listener().address());
  EXPECT_EQ(sends_nothing.Receive(), "");
  // It came first, so that its time is over too.
  EXPECT_LT(reads_nothing.Receive().size(), kMoreThanSocketsHold);
}

TEST(HttpServerTest, TheOldestGoesWhereTheyAreTooMany) {
  const auto server = Start({.time_per_connection = kNoHurry, .max_connections = 3});
  TcpClient first(server->listener().address()), second(server->listener().address()),
      third(server->listener().address());
  EXPECT_THAT(Ask(*server, kGet), EndsWith("GET /page\n"));
  EXPECT_EQ(first.Receive(), "");
  third.Send(kGet);
  EXPECT_THAT(third.Receive(), EndsWith("GET /page\n"));
}

TEST(HttpServerTest, WhoHungUpMakesRoomBeforeTheOldest) {
  absl::StatusOr<TcpListener> listener = TcpListener::Open("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  absl::Notification is_busy, all_came;
  const auto server = HttpServer::Start(*std::move(listener), {.time_per_connection = kNoHurry, .max_connections = 3},
                                        [&](const HttpRequest& request) {
                                          if (request.path == "/first") {
                                            is_busy.Notify();
                                            all_came.WaitForNotification();
                                          }
                                          return HttpResponse{};
                                        });
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->listener().address();
  TcpClient first(address);
  first.Send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
  is_busy.WaitForNotification();
  TcpClient slow(address);
  std::vector<std::unique_ptr<TcpClient>> quick;
  for (int i = 0; i < 10; ++i) {
    quick.push_back(std::make_unique<TcpClient>(address));
    quick.back()->Send(kGet);
    quick.back()->Finish();
  }
  all_came.Notify();
  for (const auto& client : quick) EXPECT_THAT(client->Receive(), StartsWith("HTTP/1.1 200 "));
  slow.Send(kGet);
  EXPECT_THAT(slow.Receive(), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServerTest, ManyClients) {
  const auto server = Start({.time_per_connection = kNoHurry});
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int k = 0; k < 100; ++k) answered += absl::EndsWith(Ask(*server, kGet), "GET /page\n") ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 800);
}

TEST(HttpServerTest, StopsAtOnceAndItsPortIsFree) {
  auto server = Start({.time_per_connection = kNoHurry});
  const std::string address = server->listener().address();
  TcpClient silent(address), unfinished(address);
  unfinished.Send("GET /page HTTP/1.1\r\n");
  EXPECT_THAT(Ask(*server, kGet), EndsWith("GET /page\n"));
  server.reset();  // within the hour
  EXPECT_EQ(silent.Receive(), "");
  EXPECT_EQ(unfinished.Receive(), "");
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  server = Start({.time_per_connection = kNoHurry}, "127.0.0.1", port);
  EXPECT_EQ(server->listener().address(), address);
  EXPECT_THAT(Ask(*server, kGet), EndsWith("GET /page\n"));
}

// The process may open no further descriptors while this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest = dup(STDIN_FILENO);
    EXPECT_GE(lowest, 0);
    close(lowest);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

TEST(HttpServerTest, WaitsForDescriptorsAtRest) {
  const auto server = Start({.time_per_connection = kNoHurry});
  TcpClient earlier(server->listener().address()), asked(server->listener().address());
  EXPECT_THAT(asked.Ask(kGet), EndsWith("GET /page\n")) << "so that both are in";
  TcpClient client;  // has its descriptor already; the server finds none
  {
    NoDescriptors none;
    client.Connect(server->listener().address());
    client.Send(kGet);
    const clock_t before = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20) << "it tries again all the time";
    earlier.Send(kGet);
    EXPECT_THAT(earlier.Receive(), EndsWith("GET /page\n")) << "who is in is served";
  }
  EXPECT_THAT(client.Receive(), EndsWith("GET /page\n"));
}

TEST(HttpServerTest, ListensAtIpv6) {
  const absl::StatusOr<TcpListener> listener = TcpListener::Open("[::1]", 0);
  if (!listener.ok()) GTEST_SKIP() << "this machine has no IPv6: " << listener.status();
  EXPECT_THAT(listener->address(), StartsWith("[::1]:"));
  EXPECT_THAT(listener->address(), Not(EndsWith(":0")));
}

TEST(HttpServerTest, WhereItCannotListen) {
  const auto server = Start({.time_per_connection = kNoHurry});
  int port = 0;
  const std::string address = server->listener().address();
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const absl::Status taken = TcpListener::Open("127.0.0.1", port).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("Address already in use"));
  EXPECT_EQ(TcpListener::Open("192.0.2.1", 0).status().code(), absl::StatusCode::kUnavailable) << "nobody's address";
}

}  // namespace
}  // namespace tensord::server
