// `tensordctl top`: pages of metrics as views, and how the pages are fetched.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_join.h"
#include "clients/cli/operators/http_get.h"
#include "clients/cli/operators/server_view.h"
#include "clients/cli/operators/server_view_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/testlib/peers/tensordctl_call.h"
#include "tests/unit/clients/fake_server.h"

namespace tensord::cli {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Answers one connection after another, each with the next of some texts, whatever it is asked.
class PageServer {
 public:
  explicit PageServer(std::vector<std::string> answers) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        const int connection = accept(listener_, nullptr, nullptr);
        if (connection < 0) return;
        std::string request;
        char buffer[1024];
        while (request.find("\r\n\r\n") == std::string::npos) {
          const ssize_t size = read(connection, buffer, sizeof(buffer));
          if (size <= 0) break;
          request.append(buffer, static_cast<size_t>(size));
        }
        EXPECT_THAT(request, HasSubstr(" HTTP/1.0\r\n"));
        send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
        close(connection);
      }
    });
  }
  ~PageServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  const std::string& address() const { return address_; }

 private:
  int listener_;
  std::string address_;
  std::thread thread_;
};

std::string Page(const std::string& body) {
  return absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: ", body.size(), "\r\n\r\n", body);
}

constexpr char kBefore[] = R"(
tensord_ready 1
tensord_draining 0
tensord_rpc_started_total{method="Execute"} 100
tensord_rpc_started_total{method="Explain"} 0
tensord_rpc_handled_total{method="Execute",code="OK"} 90
tensord_rpc_duration_seconds_bucket{method="Execute",le="0.001"} 50
tensord_rpc_duration_seconds_bucket{method="Execute",le="0.002"} 90
tensord_rpc_duration_seconds_bucket{method="Execute",le="+Inf"} 90
tensord_executor_busy_seconds_total{device="cpu:0",worker="0"} 2
tensord_executor_busy_seconds_total{device="cpu:0",worker="1"} 3
tensord_rpc_received_bytes_total{method="Execute"} 1000
tensord_compile_seconds_count 7
)";

constexpr char kAfter[] = R"(
tensord_ready 1
tensord_draining 0
tensord_rpc_started_total{method="Execute"} 300
tensord_rpc_started_total{method="Explain"} 0
tensord_rpc_handled_total{method="Execute",code="OK"} 170
tensord_rpc_handled_total{method="Execute",code="RESOURCE_EXHAUSTED"} 20
tensord_rpc_in_flight{method="Execute"} 3
tensord_rpc_duration_seconds_bucket{method="Execute",le="0.001"} 100
tensord_rpc_duration_seconds_bucket{method="Execute",le="0.002"} 190
tensord_rpc_duration_seconds_bucket{method="Execute",le="+Inf"} 190
tensord_execute_total{device="cpu:0",outcome="ok"} 80
tensord_execute_total{device="cpu:0",outcome="error"} 20
tensord_executor_busy_seconds_total{device="cpu:0",worker="0"} 4
tensord_executor_busy_seconds_total{device="cpu:0",worker="1"} 4
tensord_queue_depth{device="cpu:0"} 4
tensord_memory_bytes{device="cpu:0",state="in_use"} 2048
tensord_memory_bytes{device="cpu:0",state="free"} 1024
tensord_memory_peak_bytes{device="cpu:0"} 4096
tensord_rpc_received_bytes_total{method="Execute"} 5000
tensord_rpc_sent_bytes_total{method="Execute"} 10
tensord_program_cache_entries{tier="memory"} 2
tensord_program_cache_entries{tier="disk"} 5
tensord_program_cache_bytes{tier="memory"} 3072
tensord_program_cache_bytes{tier="disk"} 1024
tensord_compile_seconds_count 3
)";

v1::ServerInfo Info() {
  v1::ServerInfo info;
  info.set_version("1.2.3");
  v1::Device* device = info.add_devices();
  device->set_name("cpu:0");
  device->set_executors(2);
  return info;
}

TEST(ServerView, IsWhatGrewInBetween) {
  const ServerView view =
      CompareMetrics(*ParsePrometheusText(kBefore), *ParsePrometheusText(kAfter), absl::Seconds(2), Info());
  EXPECT_TRUE(view.is_ready);
  EXPECT_FALSE(view.is_draining);
  ASSERT_EQ(view.methods.size(), 1u) << "methods that nobody called are left out";
  const ServerView::Method& execute = view.methods.at("Execute");
  EXPECT_EQ(execute.calls_per_second, 50);
  EXPECT_EQ(execute.failed_per_second, 10);
  EXPECT_EQ(execute.in_flight, 3);
  // 50 of 100 calls took up to 1 ms, and 50 one to two.
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*execute.p50), 1.0, 1e-9);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(*execute.p99), 1.98, 1e-9);
  const ServerView::Device& device = view.devices.at("cpu:0");
  EXPECT_EQ(device.runs_per_second, 50);
  EXPECT_EQ(device.busy_executors, 1.5);
  EXPECT_EQ(device.executors, 2);
  EXPECT_EQ(device.queued, 4);
  EXPECT_EQ(device.memory_used_bytes, 2048);
  EXPECT_EQ(device.memory_free_bytes, 1024);
  EXPECT_EQ(device.memory_peak_bytes, 4096);
  EXPECT_EQ(view.received_bytes_per_second, 2000);
  EXPECT_EQ(view.cached_programs, 2);
  EXPECT_EQ(view.cached_bytes, 3072);
  EXPECT_EQ(view.disk_programs, 5);
  EXPECT_EQ(view.disk_bytes, 1024);
  EXPECT_EQ(view.compiled_per_second, 0) << "a counter that fell";
  const std::string text = absl::StrJoin(ServerViewLines(view, {}), "\n");
  EXPECT_THAT(text, HasSubstr("tensord 1.2.3, ready"));
  EXPECT_THAT(text, HasSubstr("\nprograms 2 of 3 KiB, on disk 5 of 1 KiB   compiled"));
  EXPECT_THAT(text, HasSubstr(" 1.50/2    2 KiB    1 KiB    4 KiB"));
}

TEST(ServerView, CountsWholeCompilations) {
  const auto compiled = [](const char* before, const char* after) {
    return CompareMetrics(*ParsePrometheusText(before), *ParsePrometheusText(after), absl::Seconds(2), Info())
        .compiled_per_second;
  };
  EXPECT_EQ(compiled("tensord_compile_seconds_count 7\n", "tensord_compile_seconds_count 9\n"), 1)
      << "of a server that tells no phases";
  EXPECT_EQ(compiled(R"(tensord_compile_seconds_count{phase="passes"} 7
tensord_compile_seconds_count{phase="sizes"} 1
tensord_compile_seconds_count{phase="total"} 5
)",
                     R"(tensord_compile_seconds_count{phase="passes"} 17
tensord_compile_seconds_count{phase="sizes"} 3
tensord_compile_seconds_count{phase="total"} 13
)"),
            5);
}

TEST(ServerView, HasNoLatencyWhereNothingEnded) {
  const ServerView view =
      CompareMetrics(*ParsePrometheusText(kAfter), *ParsePrometheusText(kAfter), absl::Seconds(1), Info());
  EXPECT_FALSE(view.methods.at("Execute").p99.has_value());
  EXPECT_THAT(ServerViewLines(view, {}), Contains(EndsWith("       -       -")));
  EXPECT_EQ(CompareMetrics({}, {}, absl::ZeroDuration(), {}).methods.size(), 0u);
}

ServerView ViewOf(int methods, int called) {
  ServerView view{.version = "1.2.3", .is_ready = true};
  for (int i = 0; i < methods; ++i) {
    ServerView::Method& method = view.methods[absl::StrCat("Method", i)];
    // The later, the busier, so that neither order is the other's.
    if (i < called) method = {.calls_per_second = 1234.5 * (i + 1), .p99 = absl::Microseconds(123)};
  }
  view.devices["cpu:0"] = {.busy_executors = 1.5, .executors = 2, .memory_used_bytes = 3e9};
  return view;
}

TEST(ServerView, FitsTheScreen) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<size_t, size_t>>{{24, 80}, {12, 60}, {10, 40}, {7, 300}, {3, 20}, {1, 1}, {50, 132}}) {
    for (const int methods : {0, 1, 3, 17, 40}) {
      SCOPED_TRACE(absl::StrCat(columns, " x ", rows, ", ", methods));
      const std::vector<std::string> lines = ServerViewLines(ViewOf(methods, 2), {.rows = rows, .columns = columns});
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(line.size(), columns) << line;
      EXPECT_THAT(lines.front(), StartsWith(absl::string_view("tensord 1.2.3, ready").substr(0, columns)));
    }
  }
}

TEST(ServerView, KeepsWhatIsBusy) {
  const std::vector<std::string> all = ServerViewLines(ViewOf(17, 3), {.rows = 24, .columns = 80});
  EXPECT_THAT(all, SizeIs(24));
  const std::vector<std::string> lines = ServerViewLines(ViewOf(17, 3), {.rows = 12, .columns = 60});
  EXPECT_THAT(lines, Contains(StartsWith("and 14 more methods")));
  const auto row = std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line[0] == 'M'; });
  ASSERT_NE(row, lines.end());
  EXPECT_THAT(*row, StartsWith("Method2             3.7k        0         0       -   123us"));
  EXPECT_THAT(row[1], StartsWith("Method1 "));
  EXPECT_THAT(row[2], StartsWith("Method0 "));
  EXPECT_THAT(lines, Contains(StartsWith("cpu:0 "))) << "the device is there too";
}

TEST(Pages, ComeWholeOrNotAtAll) {
  const std::string body(200'000, 'x');
  const PageServer server({Page(body), "HTTP/1.0 200 OK\r\n\r\nno length", "HTTP/1.1 404 Not Found\r\n\r\n",
                           "HTTP/1.1 503 Busy\r\n\r\nlater", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "hello", ""});
  const auto get = [&] { return GetPage(server.address(), "/metrics", absl::Seconds(60)); };
  EXPECT_EQ(*get(), body);
  EXPECT_EQ(*get(), "no length");
  EXPECT_EQ(get().status().code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetPage("nowhere", "/", absl::Seconds(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetPage("unix:/nowhere.sock", "/", absl::Seconds(1)).status().code(), absl::StatusCode::kUnavailable);
}

Outcome Top(const std::string& target, std::vector<std::string> words) {
  words.insert(words.begin(), {"top", "--target=" + target});
  return CallTensordctl(words);
}

TEST(Top, ShowsOneViewAndEnds) {
  client::FakeServer fake;
  fake.info = Info();
  const PageServer pages({Page(kBefore), Page(kAfter), Page(kBefore), Page(kAfter), Page("odd line")});
  const std::string metrics = "--metrics=" + pages.address();
  const Outcome once = Top(fake.target(), {metrics, "--once", "--interval=1ms"});
  EXPECT_EQ(once.status, kExitOk) << once.err;
  EXPECT_THAT(once.out, HasSubstr("\nExecute "));
  const Outcome json = Top(fake.target(), {metrics, "--once", "--interval=1ms", "--json"});
  google::protobuf::Struct parsed;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &parsed).ok()) << json.out;
  const auto& devices = parsed.fields().at("devices").struct_value().fields();
  EXPECT_EQ(devices.at("cpu:0").struct_value().fields().at("queued").number_value(), 4);
  const Outcome odd = Top(fake.target(), {metrics, "--once"});
  EXPECT_EQ(odd.status, kExitFailed);
  EXPECT_THAT(odd.err, HasSubstr("line 1 is no metric: odd line"));
}

TEST(Top, SaysWhatIsWrong) {
  client::FakeServer fake;
  EXPECT_EQ(Top(fake.target(), {"--interval=0s"}).status, kExitUsage);
  EXPECT_EQ(Top(fake.target(), {"now"}).status, kExitUsage);
  EXPECT_EQ(Top(fake.target(), {"--metrics=nowhere"}).status, kExitFailed);
  EXPECT_EQ(Top("unix:/nowhere.sock", {"--deadline=50ms"}).status, kExitFailed);
}

}  // namespace
}  // namespace tensord::cli
