// tensord.v1.Admin: what operators see and do.
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "pprof/profile.pb.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class AdminTest : public testing::Test {
 protected:
  ~AdminTest() override { std::filesystem::remove_all(Programs()); }

  std::string Programs() const { return folder_.path() + "/programs"; }
  std::string Socket() const { return folder_.path() + "/admin"; }
  std::vector<std::string> Settings() const {
    return {"admin.listen=unix:" + Socket(), "program_cache.disk_path=" + Programs()};
  }
  std::unique_ptr<v1::Admin::Stub> Dial() const {
    return v1::Admin::NewStub(grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials()));
  }
  static std::string CompileSum(InProcessServer& server, float scale) {
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum(scale);
    request.mutable_graph()->set_name("sum");
    v1::CompileResponse response;
    const grpc::Status status = Compile(server.stub(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.program().fingerprint();
  }
  static v1::ListProgramsResponse List(v1::Admin::Stub& admin, const v1::ListProgramsRequest& request = {}) {
    grpc::ClientContext context;
    v1::ListProgramsResponse response;
    const grpc::Status status = admin.ListPrograms(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static int64_t Evict(v1::Admin::Stub& admin, const v1::EvictProgramsRequest& request) {
    grpc::ClientContext context;
    v1::EvictProgramsResponse response;
    const grpc::Status status = admin.EvictPrograms(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.evicted();
  }

  TemporaryFolder folder_;
};

TEST_F(AdminTest, ItsSocketIsForTheOwnerAlone) {
  const mode_t before = umask(0007);
  {
    InProcessServer server(Settings());
    struct stat info {};
    ASSERT_EQ(stat(Socket().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    ASSERT_EQ(stat(server.socket_path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0660u) << "where the umask lets the group in";
  }
  umask(before);
  EXPECT_FALSE(std::filesystem::exists(Socket()));
}

TEST_F(AdminTest, OnlyItsListenerHasIt) {
  InProcessServer server(Settings());
  EXPECT_EQ(CallRaw(server.Dial(), "tensord.v1.Admin/Drain", "").status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  const auto admin = grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(CallRaw(admin, "tensord.v1.Compute/GetServerInfo", "").status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AdminTest, IsNeverBeyondThisMachine) {
  server::ServerConfig config;
  config.mutable_admin()->set_listen("0.0.0.0:0");
  const absl::Status status = server::Daemon::Check(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("admin.listen"));
}

// Every user of the machine reaches a loopback address.
TEST_F(AdminTest, IsNotOnTcpForCallersThatNobodyKnows) {
  const PrivateFolder folder;
  server::ServerConfig config;
  config.mutable_admin()->set_listen("127.0.0.1:0");
  const absl::Status status = server::Daemon::Check(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("every process of the machine"));
  config.mutable_identity()->set_file(
      folder.Write("callers", "a execute,read " + Fingerprint::Of("token-a").ToHex() + "\nops admin cn:ops\n"));
  EXPECT_TRUE(server::Daemon::Check(config).ok()) << server::Daemon::Check(config);

  InProcessServer server({"admin.listen=127.0.0.1:0", "identity.file=" + config.identity().file()});
  const auto admin =
      v1::Admin::NewStub(grpc::CreateChannel(server.daemon().admin_address(), grpc::InsecureChannelCredentials()));
  const auto drain = [&](const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::DrainResponse response;
    return DetailOf(admin->Drain(&context, v1::DrainRequest(), &response)).reason();
  };
  EXPECT_EQ(drain(""), "UNAUTHENTICATED");
  EXPECT_EQ(drain("token-a"), "PERMISSION_DENIED");
  const auto channel = grpc::CreateChannel(server.daemon().admin_address(), grpc::InsecureChannelCredentials());
  EXPECT_EQ(DetailOf(CallRaw(channel, "grpc.channelz.v1.Channelz/GetServers", "").status).reason(), "UNAUTHENTICATED");

  server::ServerConfig open = server.daemon().config();
  open.mutable_identity()->set_required("off");
  server.daemon().Reload(open);
  EXPECT_EQ(drain(""), "UNAUTHENTICATED") << "nor after a reload";
}

v1::ErrorDetail CaptureDetail(v1::Admin::Stub& admin, const v1::CaptureProfileRequest& request) {
  grpc::ClientContext context;
  v1::CaptureProfileResponse response;
  return DetailOf(admin.CaptureProfile(&context, request, &response));
}

TEST_F(AdminTest, TakesAProfileUnderLoad) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  std::atomic<bool> stop{false};
  std::thread load([&] {
    const auto stub = v1::Compute::NewStub(server.Dial());
    const v1::ExecuteRequest request =
        WarmRequest(*stub, LargeSum(), {FloatTensor(std::vector<float>(16, 1.0f), {16})});
    while (!stop) {
      v1::ExecuteResponse response;
      EXPECT_TRUE(Execute(*stub, request, &response).ok());
    }
  });
  v1::CaptureProfileRequest request;
  request.mutable_duration()->set_nanos(300'000'000);
  request.set_samples_per_second(500);
  int64_t samples = 0;
  for (int attempt = 0; attempt < 100 && samples == 0; ++attempt) {
    grpc::ClientContext context;
    v1::CaptureProfileResponse response;
    const grpc::Status status = admin->CaptureProfile(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    samples = response.sample_count();
    EXPECT_EQ(response.dropped_count(), 0);
    perftools::profiles::Profile profile;
    ASSERT_TRUE(profile.ParseFromString(response.profile()));
    int64_t counted = 0;
    for (const auto& sample : profile.sample()) counted += sample.value(0);
    EXPECT_EQ(counted, samples);
    EXPECT_EQ(profile.period(), 2'000'000);
  }
  EXPECT_GT(samples, 0);
  stop = true;
  load.join();
}

TEST_F(AdminTest, AProfileHasItsBounds) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  v1::CaptureProfileRequest request;
  request.mutable_duration()->set_seconds(61);
  v1::ErrorDetail detail = CaptureDetail(*admin, request);
  EXPECT_EQ(detail.reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(detail.limit(), "profile_ms");
  EXPECT_EQ(detail.limit_value(), 60'000);
  EXPECT_EQ(detail.actual_value(), 61'000);
  request.mutable_duration()->set_seconds(1);
  request.set_samples_per_second(2000);
  detail = CaptureDetail(*admin, request);
  EXPECT_EQ(detail.limit(), "profile_samples_per_second");
  EXPECT_EQ(detail.limit_value(), 1000);
  request.set_samples_per_second(-1);
  EXPECT_EQ(CaptureDetail(*admin, request).reason(), "MALFORMED_MESSAGE");
}

// A caller that leaves ends its profile, and a server that stops does not wait for one.
TEST_F(AdminTest, AProfileEndsWithItsCallerOrTheServer) {
  auto server = std::make_unique<InProcessServer>(Settings());
  const auto admin = Dial();
  v1::CaptureProfileRequest request;
  request.mutable_duration()->set_seconds(60);
  grpc::ClientContext first;
  grpc::Status left;
  std::thread caller([&] {
    v1::CaptureProfileResponse response;
    left = admin->CaptureProfile(&first, request, &response);
  });
  const auto is_under_way = [&] { return server->parts().profiler->is_busy(); };
  ASSERT_TRUE(WaitFor(is_under_way));
  EXPECT_EQ(CaptureDetail(*admin, request).limit(), "profiles") << "one at a time";
  first.TryCancel();
  caller.join();
  EXPECT_EQ(left.error_code(), grpc::StatusCode::CANCELLED);
  server->WaitUntilIdle();

  v1::CaptureProfileResponse response;
  grpc::Status stopped;
  std::thread second([&] {
    grpc::ClientContext context;
    stopped = admin->CaptureProfile(&context, request, &response);
  });
  ASSERT_TRUE(WaitFor(is_under_way));
  const absl::Time asked = absl::Now();
  server->RequestStop();
  server->WaitUntilStopped();
  second.join();
  EXPECT_LT(absl::Now() - asked, absl::Seconds(50));
  EXPECT_TRUE(stopped.ok()) << "what there was of it is answered: " << stopped.error_message();
  EXPECT_FALSE(response.profile().empty());
}

// The library's names of the messages are enough: generated code would need headers that are not packaged.
std::unique_ptr<google::protobuf::Message> ChannelzMessage(const std::string& name) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName("grpc.channelz.v1." + name);
  EXPECT_NE(descriptor, nullptr) << name;
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

TEST_F(AdminTest, ChannelzIsForOperatorsAlone) {
  InProcessServer server(Settings());
  const auto admin = grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  const Reply reply = CallRaw(admin, "grpc.channelz.v1.Channelz/GetServers", "");
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  const auto servers = ChannelzMessage("GetServersResponse");
  ASSERT_TRUE(servers->ParseFromString(reply.bytes));
  EXPECT_THAT(servers->ShortDebugString(), HasSubstr("calls_started")) << "the call that asks is one";
  for (const char* method :
       {"GetTopChannels", "GetServers", "GetServer", "GetServerSockets", "GetChannel", "GetSubchannel", "GetSocket"}) {
    const std::string path = std::string("grpc.channelz.v1.Channelz/") + method;
    EXPECT_EQ(CallRaw(server.Dial(), path, "").status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    const Reply here = CallRaw(admin, path, "");
    EXPECT_THAT(here.status.error_code(), AnyOf(grpc::StatusCode::OK, grpc::StatusCode::NOT_FOUND)) << method;
    EXPECT_EQ(DetailOf(CallRaw(admin, path, "\xff").status).reason(), "MALFORMED_MESSAGE") << method;
  }
}

TEST_F(AdminTest, ChannelzRefusesNumbersThatAreNone) {
  InProcessServer server(Settings());
  const auto admin = grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  const std::map<std::string, std::vector<std::string>> fields = {
      {"GetTopChannels", {"start_channel_id", "max_results"}},
      {"GetServers", {"start_server_id", "max_results"}},
      {"GetServer", {"server_id"}},
      {"GetServerSockets", {"server_id", "start_socket_id", "max_results"}},
      {"GetChannel", {"channel_id"}},
      {"GetSubchannel", {"subchannel_id"}},
      {"GetSocket", {"socket_id"}}};
  for (const auto& [method, names] : fields) {
    for (const std::string& name : names) {
      for (const int64_t number :
           {int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
        const auto request = ChannelzMessage(method + "Request");
        request->GetReflection()->SetInt64(request.get(), request->GetDescriptor()->FindFieldByName(name), number);
        const grpc::Status status =
            CallRaw(admin, "grpc.channelz.v1.Channelz/" + method, request->SerializeAsString()).status;
        if (number < 0) {
          EXPECT_EQ(DetailOf(status).reason(), "MALFORMED_MESSAGE") << method << " " << name;
        } else {
          EXPECT_THAT(status.error_code(), AnyOf(grpc::StatusCode::OK, grpc::StatusCode::NOT_FOUND)) << method;
        }
      }
    }
  }
}

TEST_F(AdminTest, ListsPrograms) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  EXPECT_EQ(List(*admin).programs_size(), 0);
  std::vector<std::string> fingerprints;
  for (int i = 1; i <= 5; ++i) fingerprints.push_back(CompileSum(server, static_cast<float>(i)));
  v1::ExecuteResponse response;
  ASSERT_TRUE(
      Execute(server.stub(), RequestOf(LargeSum(1), {FloatTensor(std::vector<float>(16, 1), {16})}), &response).ok());
  server.parts().store->Flush();

  std::vector<v1::ProgramEntry> entries;
  v1::ListProgramsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    const v1::ListProgramsResponse page = List(*admin, request);
    EXPECT_LE(page.programs_size(), 2);
    entries.insert(entries.end(), page.programs().begin(), page.programs().end());
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 3);
  ASSERT_EQ(entries.size(), 5u);
  std::sort(fingerprints.begin(), fingerprints.end());
  int64_t runs = 0;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(entries[i].program().fingerprint(), fingerprints[i]);
    EXPECT_EQ(entries[i].program().device(), "cpu:0");
    EXPECT_EQ(entries[i].graph_name(), "sum");
    EXPECT_GT(entries[i].bytes(), 0);
    EXPECT_GT(entries[i].last_used().seconds(), 0);
    EXPECT_TRUE(entries[i].on_disk());
    runs += entries[i].run_count();
  }
  EXPECT_EQ(runs, 1);

  for (const auto& [size, token] : std::vector<std::pair<int, std::string>>{{-1, ""}, {0, "no token"}}) {
    v1::ListProgramsRequest wrong;
    wrong.set_page_size(size);
    wrong.set_page_token(token);
    grpc::ClientContext context;
    v1::ListProgramsResponse page;
    EXPECT_EQ(DetailOf(admin->ListPrograms(&context, wrong, &page)).reason(), "MALFORMED_MESSAGE");
  }
}

TEST_F(AdminTest, EvictsFromMemoryAndDisk) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  std::vector<std::string> fingerprints;
  for (int i = 1; i <= 3; ++i) fingerprints.push_back(CompileSum(server, static_cast<float>(i)));
  server.parts().store->Flush();
  v1::EvictProgramsRequest one;
  one.add_fingerprints(fingerprints[0]);
  EXPECT_EQ(Evict(*admin, one), 1);
  EXPECT_EQ(Evict(*admin, one), 0) << "it is on disk only";
  ASSERT_EQ(List(*admin).programs_size(), 3);
  const v1::ListProgramsResponse listed = List(*admin);
  for (const v1::ProgramEntry& entry : listed.programs()) {
    EXPECT_TRUE(entry.on_disk());
    EXPECT_EQ(entry.program().device().empty(), entry.program().fingerprint() == fingerprints[0]);
  }
  one.set_disk_too(true);
  EXPECT_EQ(Evict(*admin, one), 1);
  EXPECT_EQ(List(*admin).programs_size(), 2);
  v1::EvictProgramsRequest all;
  all.set_all(true);
  all.set_disk_too(true);
  EXPECT_EQ(Evict(*admin, all), 2);
  EXPECT_EQ(List(*admin).programs_size(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(Programs()));

  v1::EvictProgramsRequest nothing, both = all, no_fingerprint;
  both.add_fingerprints(fingerprints[0]);
  no_fingerprint.add_fingerprints("0123");
  for (const v1::EvictProgramsRequest& wrong : {nothing, both, no_fingerprint}) {
    grpc::ClientContext context;
    v1::EvictProgramsResponse response;
    EXPECT_EQ(DetailOf(admin->EvictPrograms(&context, wrong, &response)).reason(), "MALFORMED_MESSAGE");
  }
}

TEST_F(AdminTest, ListsSessions) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  const auto list = [&admin] {
    grpc::ClientContext context;
    v1::ListSessionsResponse response;
    const grpc::Status status = admin->ListSessions(&context, v1::ListSessionsRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  EXPECT_EQ(list().sessions_size(), 0);
  const auto session = server.parts().sessions->Open("somebody", absl::Hours(1));
  ASSERT_TRUE(session.ok());
  ASSERT_EQ(list().sessions_size(), 1);
  const v1::ListSessionsResponse sessions = list();
  const v1::SessionEntry& entry = sessions.sessions(0);
  EXPECT_EQ(entry.session().id(), (*session)->id());
  EXPECT_EQ(entry.session().lease().seconds(), 3600);
  EXPECT_EQ(entry.tenant(), "somebody");
  EXPECT_EQ(entry.tensor_count(), 0);
  EXPECT_LE(entry.lease_left().seconds(), 3600);
}

TEST_F(AdminTest, SetsTheLogLevel) {
  InProcessServer server(Settings());
  const auto admin = Dial();
  const auto set = [&admin](const std::string& level) {
    v1::SetLogLevelRequest request;
    request.set_level(level);
    grpc::ClientContext context;
    v1::SetLogLevelResponse response;
    return admin->SetLogLevel(&context, request, &response);
  };
  EXPECT_FALSE(server.parts().log->Logs(server::LogLevel::kError));
  EXPECT_TRUE(set("error").ok());
  EXPECT_TRUE(server.parts().log->Logs(server::LogLevel::kError));
  EXPECT_FALSE(server.parts().log->Logs(server::LogLevel::kWarning));
  EXPECT_TRUE(set("off").ok());
  EXPECT_FALSE(server.parts().log->Logs(server::LogLevel::kError));
  EXPECT_EQ(DetailOf(set("loud")).reason(), "MALFORMED_MESSAGE");
}

// Whatever else the log leaves out.
TEST_F(AdminTest, CallsOfOperatorsAreWrittenDown) {
  std::vector<std::string> settings = Settings();
  settings.insert(settings.end(), {"log.level=error", "log.requests=false"});
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server(settings);
    const auto admin = Dial();
    List(*admin);
    server.WaitUntilIdle();  // a call is written down when the transport is through with it
    CompileSum(server, 1);
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "of-the-operator");
    v1::SetLogLevelRequest loud;
    loud.set_level("loud");
    v1::SetLogLevelResponse response;
    EXPECT_FALSE(admin->SetLogLevel(&context, loud, &response).ok());
  }
  const std::vector<std::string> lines =
      absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << "Compile is no operator's: " << absl::StrJoin(lines, "\n");
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("\"event\":\"operator_call\""), HasSubstr("\"method\":\"ListPrograms\""),
                    HasSubstr("\"code\":\"OK\""), HasSubstr("\"tenant\":\"default\""), HasSubstr("\"peer\":\"unix:")));
  EXPECT_THAT(lines[1],
              AllOf(HasSubstr("\"method\":\"SetLogLevel\""), HasSubstr("\"code\":\"INVALID_ARGUMENT\""),
                    HasSubstr("\"reason\":\"MALFORMED_MESSAGE\""), HasSubstr("\"request_id\":\"of-the-operator\"")));
}

TEST_F(AdminTest, Drains) {
  InProcessServer server(Settings());
  v1::DrainRequest wrong;
  wrong.mutable_timeout()->set_seconds(-1);
  const auto admin = Dial();
  {
    grpc::ClientContext context;
    v1::DrainResponse response;
    EXPECT_EQ(DetailOf(admin->Drain(&context, wrong, &response)).reason(), "MALFORMED_MESSAGE");
  }
  grpc::ClientContext context;
  v1::DrainResponse response;
  EXPECT_TRUE(admin->Drain(&context, v1::DrainRequest(), &response).ok());
  server.WaitUntilStopped();
  EXPECT_EQ(server.parts().gate->snapshot().state, server::ServingState::kStopped);
}

TEST_F(AdminTest, ADrainsTimeoutIsTheCallers) {
  std::vector<std::string> settings = Settings();
  settings.push_back("drain.timeout_ms=3600000");
  InProcessServer server(settings);
  BlockedExecutor blocked(server);
  std::thread caller([&server] {
    v1::ExecuteResponse response;
    const v1::Tensor ones = FloatTensor(std::vector<float>(16, 1), {16});
    EXPECT_FALSE(Execute(server.stub(), RequestOf(LargeSum(), {ones}), &response).ok());
  });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued > 0; }));
  v1::DrainRequest request;
  request.mutable_timeout()->set_nanos(1'000'000);
  grpc::ClientContext context;
  v1::DrainResponse response;
  EXPECT_TRUE(Dial()->Drain(&context, request, &response).ok());
  caller.join();
  blocked.Release();
  server.WaitUntilStopped();
}

TEST_F(AdminTest, OperatorsDoNotWaitForTheCompiler) {
  std::vector<std::string> settings = Settings();
  settings.insert(settings.end(), {"compiler.threads=1", "compiler.queue_length=1"});
  InProcessServer server(settings);
  const auto admin = Dial();
  const std::string fingerprint = CompileSum(server, 1);
  BlockedCompiler blocked(server);
  ASSERT_TRUE(server.parts().compile_pool->Submit(server::Caller().tenant, [] {}).ok()) << "the queue is full";
  EXPECT_EQ(List(*admin).programs_size(), 1);
  v1::EvictProgramsRequest evict;
  evict.set_all(true);
  EXPECT_EQ(Evict(*admin, evict), 1);
}

}  // namespace
}  // namespace tensord
