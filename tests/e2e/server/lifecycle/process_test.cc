// The binary: what it prints, how it ends.
#include <elf.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/identity_table.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
};

TEST_F(ProcessTest, PrintsWhereItListensAndEndsOnSigterm) {
  TemporaryFolder folder;
  Process server({"--listen=unix:" + folder.path() + "/s", "--listen=127.0.0.1:0", "--metrics=127.0.0.1:0"});
  EXPECT_EQ(server.Line(), "listening grpc unix:" + folder.path() + "/s");
  const std::string tcp = server.Line();
  EXPECT_THAT(tcp, MatchesRegex("listening grpc 127.0.0.1:[1-9][0-9]*"));
  EXPECT_THAT(server.Line(), MatchesRegex("listening metrics 127.0.0.1:[1-9][0-9]*"));
  for (const std::string& target : {"unix:" + folder.path() + "/s", tcp.substr(15)}) {
    const auto stub = v1::Compute::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
    v1::ExecuteResponse response;
    const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
    EXPECT_TRUE(Execute(*stub, RequestOf(SmallAdd(), ones), &response).ok()) << target;
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_NE(access((folder.path() + "/s").c_str(), F_OK), 0);
}

TEST_F(ProcessTest, ASecondSignalEndsTheGrace) {
  TemporaryFolder folder;
  Process server({"--listen=unix:" + folder.path() + "/s", "--set=drain.grace_ms=3600000"});
  EXPECT_THAT(server.Line(), HasSubstr("listening"));
  server.Signal(SIGINT);
  const auto channel = grpc::CreateChannel("unix:" + folder.path() + "/s", grpc::InsecureChannelCredentials());
  EXPECT_TRUE(WaitFor([&] { return CallRaw(channel, "grpc.health.v1.Health/Check", "").bytes == "\x08\x02"; }));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(ProcessTest, SaysWhereOpenBlasTakesTheProcessorForAnOldOne) {
#ifndef __x86_64__
  GTEST_SKIP() << "the cores are those of x86-64";
#else
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no kernels are newer than this processor";
  // With none, the server begins again with one that fits, whatever OpenBLAS knows of this processor.
  for (const std::string core : {"Prescott", "Haswell", ""}) {
    TemporaryFolder folder;
    const PrivateFolder files;
    Process server({"--listen=unix:" + folder.path() + "/s"}, files.PathOf("errors"),
                   {"/usr/bin/env", core.empty() ? "--unset=OPENBLAS_CORETYPE" : "OPENBLAS_CORETYPE=" + core});
    EXPECT_THAT(server.Line(), HasSubstr("listening"));
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
    std::ifstream errors(files.PathOf("errors"));
    const std::string log{std::istreambuf_iterator<char>(errors), {}};
    const auto says = AllOf(HasSubstr("outdated blas"), HasSubstr("Prescott"), HasSubstr("OPENBLAS_CORETYPE="));
    if (core == "Prescott") {
      EXPECT_THAT(log, says);
    } else {
      EXPECT_THAT(log, Not(HasSubstr("outdated blas")));
    }
  }
#endif
}

// Returns the message of a start that fails.
std::string RefusedStart(const std::vector<std::string>& before, int status) {
  TemporaryFolder folder;
  const PrivateFolder files;
  Process server({"--listen=unix:" + folder.path() + "/s"}, files.PathOf("errors"), before);
  EXPECT_EQ(server.Rest(), "") << "it does not listen";
  EXPECT_EQ(server.Wait(), status);
  std::ifstream errors(files.PathOf("errors"));
  return {std::istreambuf_iterator<char>(errors), {}};
}

TEST_F(ProcessTest, RunsNoKernelsOfOpenBlasThatTheProcessorLacks) {
#ifndef __x86_64__
  GTEST_SKIP() << "the cores are those of x86-64";
#else
  if (__builtin_cpu_supports("fma4")) GTEST_SKIP() << "it has what those need";
  EXPECT_THAT(RefusedStart({"/usr/bin/env", "OPENBLAS_CORETYPE=Bulldozer"}, 2),
              AllOf(HasSubstr("Bulldozer"), HasSubstr("FMA4"), HasSubstr("OPENBLAS_CORETYPE")));
#endif
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadow memory has no room in it either
TEST_F(ProcessTest, SaysThatItsAddressSpaceIsTooSmall) {
  EXPECT_THAT(RefusedStart({"/bin/sh", "-c", "ulimit -v 300000; exec \"$@\"", "sh"}, 1),
              AllOf(HasSubstr("address space"), HasSubstr("ulimit -v")));
}
#endif

TEST_F(ProcessTest, WhatGrpcTracesIsNotInTheLog) {
  TemporaryFolder folder;
  const PrivateFolder files;
  Process server({"--listen=unix:" + folder.path() + "/s"}, files.PathOf("errors"),
                 {"/usr/bin/env", "GRPC_TRACE=all", "GRPC_VERBOSITY=DEBUG"});
  EXPECT_THAT(server.Line(), HasSubstr("listening"));
  const auto stub =
      v1::Compute::NewStub(grpc::CreateChannel("unix:" + folder.path() + "/s", grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer token-of-nobody");
  v1::ServerInfo info;
  EXPECT_TRUE(stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  std::ifstream errors(files.PathOf("errors"));
  const std::string log{std::istreambuf_iterator<char>(errors), {}};
  EXPECT_THAT(log, AllOf(HasSubstr("GRPC_TRACE is ignored"), Not(HasSubstr("token-of-nobody"))));
}

TEST_F(ProcessTest, SymbolsAreBoundAtTheStart) {
  std::ifstream file(Process::BinaryPath(), std::ios::binary);
  std::string binary(std::filesystem::file_size(Process::BinaryPath()), '\0');
  ASSERT_TRUE(file.read(binary.data(), static_cast<std::streamsize>(binary.size())));
  Elf64_Ehdr header;
  ASSERT_GE(binary.size(), sizeof(header));
  std::memcpy(&header, binary.data(), sizeof(header));
  uint64_t flags = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, binary.data() + header.e_phoff + i * sizeof(part), sizeof(part));
    if (part.p_type != PT_DYNAMIC) continue;
    for (size_t at = part.p_offset; at < part.p_offset + part.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, binary.data() + at, sizeof(entry));
      if (entry.d_tag == DT_FLAGS_1) flags = entry.d_un.d_val;
    }
  }
  EXPECT_NE(flags & DF_1_NOW, 0u);
}

// OpenBLAS chooses its kernels before the process has read its settings.
TEST_F(ProcessTest, OpenBlasKeepsToTheInstructionSetToo) {
#ifndef __x86_64__
  GTEST_SKIP() << "the cores are those of x86-64";
#endif
  struct Case {
    std::string core, isa;
    bool is_bound;
  };
  for (const Case& c : {Case{"", "baseline", true}, Case{"", "auto", true}, Case{"Nehalem", "baseline", false}}) {
    TemporaryFolder folder;
    const PrivateFolder files;
    std::vector<std::string> environment = {"/usr/bin/env", "--unset=OPENBLAS_CORETYPE"};
    if (!c.core.empty()) environment.push_back("OPENBLAS_CORETYPE=" + c.core);
    Process server({"--listen=unix:" + folder.path() + "/s", "--set=cpu.isa=" + c.isa}, files.PathOf("errors"),
                   environment);
    EXPECT_THAT(server.Line(), HasSubstr("listening"));
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
    std::ifstream errors(files.PathOf("errors"));
    const std::string log{std::istreambuf_iterator<char>(errors), {}};
    const auto says = AllOf(HasSubstr("blas beyond isa"), HasSubstr("OPENBLAS_CORETYPE=Prescott"));
    if (c.is_bound) {
      EXPECT_THAT(log, Not(HasSubstr("blas beyond isa"))) << c.isa;
    } else {
      EXPECT_THAT(log, says);
    }
  }
}

TEST_F(ProcessTest, RefusesAnInstructionSetThatTheProcessorDoesNotHave) {
  const PrivateFolder files;
  Process server({"--listen=unix:" + files.PathOf("s"), "--set=cpu.isa=avx9"}, files.PathOf("errors"));
  EXPECT_EQ(server.Wait(), 2);
  std::ifstream errors(files.PathOf("errors"));
  const std::string said{std::istreambuf_iterator<char>(errors), {}};
  EXPECT_THAT(said, AllOf(HasSubstr("setting cpu.isa"), HasSubstr("avx9"), HasSubstr("auto, baseline")));
}

TEST_F(ProcessTest, RefusesAWayToJoinThatDoesNotExist) {
  const PrivateFolder files;
  Process server({"--listen=unix:" + files.PathOf("s"), "--set=cpu.disabled_joins=nothing"}, files.PathOf("errors"));
  EXPECT_EQ(server.Wait(), 2);
  std::ifstream errors(files.PathOf("errors"));
  const std::string said{std::istreambuf_iterator<char>(errors), {}};
  EXPECT_THAT(said, AllOf(HasSubstr("setting cpu.disabled_joins"), HasSubstr("nothing"), HasSubstr("epilogue")));
}

TEST_F(ProcessTest, ReadsItsConfigurationAgainOnSighup) {
  TemporaryFolder folder;
  const PrivateFolder files;
  const auto write = [&](const std::string& token, int64_t deadline_ms) {
    files.Write("callers", "a execute,read " + Fingerprint::Of(token).ToHex() + "\n");
    return files.Write("config", "identity { file: \"" + files.PathOf("callers") +
                                     "\" trust_unix_sockets: false } reload { check_files_ms: 0 } limits { "
                                     "default_deadline_ms: " +
                                     std::to_string(deadline_ms) + " }");
  };
  const std::string config = write("token-1", 1000);
  Process server({"--listen=unix:" + folder.path() + "/s", "--config=" + config});
  EXPECT_THAT(server.Line(), HasSubstr("listening"));
  const auto stub =
      v1::Compute::NewStub(grpc::CreateChannel("unix:" + folder.path() + "/s", grpc::InsecureChannelCredentials()));
  // Returns the limit that it tells to the owner of that token; 0: nothing.
  const auto deadline_for = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::ServerInfo info;
    if (!stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok()) return int64_t{0};
    for (const v1::Limit& limit : info.limits()) {
      if (limit.name() == "default_deadline_ms") return limit.value();
    }
    return int64_t{-1};
  };
  EXPECT_EQ(deadline_for("token-1"), 1000);
  write("token-2", 2000);
  EXPECT_EQ(deadline_for("token-2"), 0);
  server.Signal(SIGHUP);
  EXPECT_TRUE(WaitFor([&] { return deadline_for("token-2") == 2000; }));
  EXPECT_EQ(deadline_for("token-1"), 0);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(ProcessTest, TakesThePlaceOfAServerThatWasKilled) {
  TemporaryFolder folder;
  const std::vector<std::string> flags = {"--listen=unix:" + folder.path() + "/s"};
  {
    Process killed(flags);
    EXPECT_THAT(killed.Line(), HasSubstr("listening"));
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Wait(), 128 + SIGKILL);
  }
  Process server(flags);
  EXPECT_THAT(server.Line(), HasSubstr("listening"));
  Process second(flags);
  EXPECT_EQ(second.Wait(), 1) << "the first one lives";
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(ProcessTest, ListensInTheRuntimeFolderByDefault) {
  TemporaryFolder folder;
  setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  Process server({});
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(server.Line(), "listening grpc unix:" + folder.path() + "/tensord.sock");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST_F(ProcessTest, ChecksAConfiguration) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/config";
  const auto check = [&path](const std::string& text) {
    std::ofstream(path) << text;
    return Process({"--config=" + path, "--check-config"}).Wait();
  };
  EXPECT_EQ(check("limits { rank: 3 }"), 0);
  EXPECT_EQ(check("{\"listen\": [\"127.0.0.1:0\"]}"), 0);
  EXPECT_EQ(check("limits { rnak: 3 }"), 2);
  EXPECT_EQ(check("cpu { executors: 0 }"), 2);
  EXPECT_EQ(check("listen: \"0.0.0.0:1\""), 2);
  unlink(path.c_str());
  EXPECT_EQ(Process({"--config=" + path, "--check-config"}).Wait(), 2) << "no file is a wrong one";
  EXPECT_EQ(Process({"--config=" + path}).Wait(), 2);

  std::ofstream(path) << Process({"--print-default-config"}).Rest();
  EXPECT_EQ(Process({"--config=" + path, "--check-config"}).Wait(), 0) << "the printed defaults are a configuration";
  unlink(path.c_str());
}

// With the files that they name in another folder.
TEST_F(ProcessTest, TheExamplesAreRight) {
  const PrivateFolder folder;
  const CertificateAuthority ca;
  WriteServerCertificate(folder, ca.Issue());
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  };
  const std::string callers = read("deploy/config/tenants.callers");
  folder.Write("tenants.callers", callers);
  for (const char* name : {"tensord.textproto", "tenants.textproto"}) {
    std::string text = read(absl::StrCat("deploy/config/", name));
    ASSERT_FALSE(text.empty()) << name;
    absl::StrReplaceAll({{"/etc/tensord/", folder.PathOf("")}, {"/run/tensord/", folder.PathOf("")}}, &text);
    EXPECT_EQ(Process({"--config=" + folder.Write(name, text), "--check-config"}).Wait(), 0) << name;
  }
  const auto table = server::IdentityTable::Parse(callers);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->num_tenants(), 2u);
  for (const char* tenant : {"team-a", "team-b", "ops"}) {
    const server::Caller* const caller = table->FindToken(absl::StrCat("example-token-of-", tenant));
    ASSERT_NE(caller, nullptr) << tenant;
    EXPECT_EQ(caller->tenant, tenant);
  }
}

TEST_F(ProcessTest, FlagsThatOnlyPrint) {
  Process version({"--version"});
  EXPECT_THAT(version.Line(), MatchesRegex("tensord [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(version.Wait(), 0);
  Process help({"--help"});
  EXPECT_THAT(help.Rest(), HasSubstr("--listen"));
  EXPECT_EQ(help.Wait(), 0);
  EXPECT_EQ(Process({"--no-such-flag"}).Wait(), 2);
}

}  // namespace
}  // namespace tensord
