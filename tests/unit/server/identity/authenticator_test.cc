#include "server/identity/authenticator.h"

#include <prometheus/registry.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/fingerprint.h"
#include "engine/base/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/method_roles.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

IdentityPolicy PolicyOf(const std::string& text, bool required = true) {
  IdentityPolicy policy;
  policy.required = required;
  policy.table = std::make_shared<const IdentityTable>(*IdentityTable::Parse(text));
  return policy;
}

class AuthenticatorTest : public ::testing::Test {
 protected:
  // "tenant", or the reason of the refusal.
  std::string Admit(const Credentials& credentials, RpcMethod method = RpcMethod::kExecute) {
    Caller caller;
    const absl::Status status = authenticator().Admit(credentials, "ipv4:10.0.0.1:5", method, &caller);
    if (status.ok()) return caller.tenant;
    return DetailOf(status)->reason;
  }

  double Refusals(const std::string& reason) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tensord_auth_refusals_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == reason) return metric.counter.value;
      }
    }
    return -1;
  }

  Authenticator& authenticator() { return *authenticator_; }

  // Returns the log's lines, which it has written when it is gone.
  std::string TakeLog() {
    authenticator_.reset();
    audit_.reset();
    log_.reset();
    return text_.str();
  }

  const std::string callers_ = "a execute,read " + Fingerprint::Of("token-a").ToHex() + "\nr read " +
                               Fingerprint::Of("token-r").ToHex() + "\nc execute spiffe://x/c\nd execute dns:d.x\n";
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<std::pair<absl::Time, std::function<void()>>> alarms_;  // those of the audit

 private:
  std::ostringstream text_;
  prometheus::Registry registry_;
  ControlMetrics metrics_{registry_};
  std::unique_ptr<Log> log_ = std::make_unique<Log>(
      Log::Options{},
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)));
  std::unique_ptr<Audit> audit_ = std::make_unique<Audit>(
      log_.get(), [this](absl::Time time, std::function<void()> ring) { alarms_.emplace_back(time, std::move(ring)); },
      [this] { return now_; });
  std::unique_ptr<Authenticator> authenticator_ = std::make_unique<Authenticator>(&metrics_, audit_.get());
};

TEST_F(AuthenticatorTest, AsksForNothingByDefault) {
  EXPECT_EQ(Admit({}), "default");
  EXPECT_EQ(Admit({.authorizations = {"Bearer whatever"}}), "default") << "there are no tokens to compare it with";
}

TEST_F(AuthenticatorTest, KnowsCallersByTheirTokens) {
  authenticator().Replace(PolicyOf(callers_));
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-a"}}), "a");
  EXPECT_EQ(Admit({.authorizations = {"bearer  token-a"}}), "a");
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-b"}}), "UNAUTHENTICATED");
  EXPECT_EQ(Refusals("unknown_token"), 1);
  for (const char* malformed : {"", "Bearer", "Bearer ", "Basic token-a", "token-a"}) {
    EXPECT_EQ(Admit({.authorizations = {malformed}}), "UNAUTHENTICATED") << malformed;
  }
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-a", "Bearer token-r"}}), "UNAUTHENTICATED") << "which of them?";
  EXPECT_EQ(Refusals("malformed"), 6);
  EXPECT_EQ(Admit({}), "UNAUTHENTICATED");
  EXPECT_EQ(Refusals("no_credentials"), 1);
}

TEST_F(AuthenticatorTest, AllowsWhatTheRolesSay) {
  authenticator().Replace(PolicyOf(callers_));
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-r"}}, RpcMethod::kGetServerInfo), "r");
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-r"}}, RpcMethod::kExecute), "PERMISSION_DENIED");
  EXPECT_EQ(Refusals("role"), 1);
  Caller caller;
  const absl::Status status =
      authenticator().Admit({.authorizations = {"Bearer token-r"}}, "", RpcMethod::kPutTensor, &caller);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("PutTensor needs the role execute"), HasSubstr("has read")));
}

// Literally: a method whose role is changed is to be changed here too.
TEST_F(AuthenticatorTest, TheRolesOfMethodsAreThese) {
  for (const RpcMethod method :
       {RpcMethod::kCaptureProfile, RpcMethod::kDrain, RpcMethod::kEvictPrograms, RpcMethod::kListPrograms,
        RpcMethod::kListSessions, RpcMethod::kSetLogLevel, RpcMethod::kGetTopChannels, RpcMethod::kGetServers,
        RpcMethod::kGetServer, RpcMethod::kGetServerSockets, RpcMethod::kGetChannel, RpcMethod::kGetSubchannel,
        RpcMethod::kGetSocket, RpcMethod::kReleasePrograms}) {
    EXPECT_EQ(RoleFor(method), Role::kAdmin) << std::string(Name(method));
  }
  for (const RpcMethod method : {RpcMethod::kCompile, RpcMethod::kExecute, RpcMethod::kExecuteStream,
                                 RpcMethod::kOpenSession, RpcMethod::kPutTensor, RpcMethod::kGetTensor}) {
    EXPECT_EQ(RoleFor(method), Role::kExecute) << std::string(Name(method));
  }
  for (const RpcMethod method : {RpcMethod::kGetProgram, RpcMethod::kGetServerInfo}) {
    EXPECT_EQ(RoleFor(method), Role::kRead) << std::string(Name(method));
  }
}

// No method is open to a caller who has another role alone.
TEST_F(AuthenticatorTest, EveryMethodNeedsItsRole) {
  for (size_t i = 0; i < kNumRpcMethods; ++i) {
    const auto method = static_cast<RpcMethod>(i);
    for (const Role role : {Role::kExecute, Role::kRead, Role::kAdmin}) {
      authenticator().Replace(PolicyOf("t " + std::string(Name(role)) + " cn:x"));
      EXPECT_EQ(Admit({.certificate_names = {"cn:x"}}, method), role == RoleFor(method) ? "t" : "PERMISSION_DENIED")
          << std::string(Name(method));
    }
  }
}

TEST_F(AuthenticatorTest, KnowsCallersByTheirCertificates) {
  authenticator().Replace(PolicyOf(callers_));
  EXPECT_EQ(Admit({.certificate_names = {"spiffe://x/c", "dns:d.x"}}), "c") << "the first name that is known";
  EXPECT_EQ(Admit({.certificate_names = {"spiffe://x/other", "dns:d.x"}}), "d");
  EXPECT_EQ(Admit({.certificate_names = {"cn:d.x"}}), "UNAUTHENTICATED");
  EXPECT_EQ(Refusals("unknown_certificate"), 1);
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-a"}, .certificate_names = {"spiffe://x/c"}}), "a");
  EXPECT_EQ(Admit({.authorizations = {"Bearer nobody"}, .certificate_names = {"spiffe://x/c"}}), "UNAUTHENTICATED");

  IdentityPolicy any_of_the_ca;
  any_of_the_ca.required = true;
  any_of_the_ca.takes_certificates = true;
  authenticator().Replace(any_of_the_ca);
  EXPECT_EQ(Admit({.certificate_names = {"cn:anybody"}}), "default");
  Caller caller;
  EXPECT_TRUE(authenticator().Admit({.certificate_names = {"cn:anybody"}}, "", RpcMethod::kExecute, &caller).ok());
  EXPECT_FALSE(caller.roles.Has(Role::kAdmin));
  EXPECT_EQ(Admit({}), "UNAUTHENTICATED");
}

TEST_F(AuthenticatorTest, TrustsUnixSocketsWhereItIsTold) {
  IdentityPolicy policy = PolicyOf(callers_);
  authenticator().Replace(policy);
  EXPECT_EQ(Admit({.over_unix_socket = true}), "default");
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-a"}, .over_unix_socket = true}), "a");
  EXPECT_EQ(Admit({.authorizations = {"Bearer nobody"}, .over_unix_socket = true}), "UNAUTHENTICATED");
  policy.trusts_unix_sockets = false;
  authenticator().Replace(policy);
  EXPECT_EQ(Admit({.over_unix_socket = true}), "UNAUTHENTICATED");
  EXPECT_EQ(Admit({.authorizations = {"Bearer token-a"}, .over_unix_socket = true}), "a");
  policy.required = false;
  authenticator().Replace(policy);
  EXPECT_EQ(Admit({}), "default");
  EXPECT_EQ(Admit({.authorizations = {"Bearer nobody"}}), "UNAUTHENTICATED") << "a wrong token is never taken for none";
}

TEST_F(AuthenticatorTest, TellsTheLogWhoWasRefused) {
  authenticator().Replace(PolicyOf(callers_));
  Admit({.authorizations = {"Bearer secret-of-somebody"}});
  Admit({.authorizations = {"Bearer token-r"}});
  const std::string log = TakeLog();
  EXPECT_THAT(log, AllOf(HasSubstr("access_refused"), HasSubstr("\"reason\":\"unknown_token\""),
                         HasSubstr("\"peer\":\"ipv4:10.0.0.1:5\""), HasSubstr("\"method\":\"Execute\"")));
  EXPECT_THAT(log, AllOf(HasSubstr("\"reason\":\"role\""), HasSubstr("\"tenant\":\"r\"")));
  EXPECT_THAT(log, Not(HasSubstr("secret-of-somebody")));
}

TEST_F(AuthenticatorTest, TheLogIsNotFlooded) {
  authenticator().Replace(PolicyOf(callers_));
  for (int i = 0; i < 1000; ++i) Admit({});
  now_ += absl::Seconds(1);
  for (int i = 0; i < 1000; ++i) Admit({});
  EXPECT_EQ(Refusals("no_credentials"), 2000) << "all are counted";
  const std::string log = TakeLog();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), Audit::kBurst + Audit::kPerSecond + 1);
  EXPECT_THAT(log, HasSubstr("980 lines like this were left out before it"));
  EXPECT_THAT(log, HasSubstr("\"995 lines like this were left out\"")) << "at the end";
}

TEST_F(AuthenticatorTest, WhatWasLeftOutIsToldWhereNoRefusalFollows) {
  authenticator().Replace(PolicyOf(callers_));
  for (int i = 0; i < Audit::kBurst; ++i) Admit({});
  EXPECT_TRUE(alarms_.empty()) << "nothing was left out";
  for (int i = 0; i < 7; ++i) Admit({});
  ASSERT_EQ(alarms_.size(), 1u) << "one for all of them";
  EXPECT_EQ(alarms_[0].first, now_ + Audit::kTellAfter);
  alarms_[0].second();
  for (int i = 0; i < 5; ++i) Admit({});
  ASSERT_EQ(alarms_.size(), 2u) << "and another afterwards";
  now_ += absl::Minutes(1);
  Admit({});
  alarms_[1].second();
  const std::string log = TakeLog();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), Audit::kBurst + 2) << "what a line told no alarm tells again";
  EXPECT_THAT(log, HasSubstr("\"7 lines like this were left out\""));
  EXPECT_THAT(log, HasSubstr("\"5 lines like this were left out before it\""));
}

TEST_F(AuthenticatorTest, NamingWhatIsAnothersIsCountedAndTold) {
  authenticator().NamedAnothers(RpcMethod::kGetTensor, "ipv4:10.0.0.1:5", "a", "session", "b", {});
  EXPECT_EQ(Refusals("other_tenant"), 1);
  EXPECT_THAT(TakeLog(),
              AllOf(HasSubstr("\"reason\":\"other_tenant\""), HasSubstr("\"method\":\"GetTensor\""),
                    HasSubstr("\"tenant\":\"a\""), HasSubstr("\"what\":\"session\""), HasSubstr("\"owner\":\"b\"")));
}

TEST_F(AuthenticatorTest, ACredentialThatBecomesAnotherTenantsIsCountedAndTold) {
  authenticator().Replace(PolicyOf(callers_));
  const Credentials credentials = {.authorizations = {"Bearer token-a"}, .certificate_names = {}};
  Caller caller;
  ASSERT_TRUE(authenticator().Admit(credentials, "ipv4:10.0.0.1:5", RpcMethod::kExecuteStream, &caller).ok());
  EXPECT_TRUE(authenticator().AdmitAgain(credentials, "ipv4:10.0.0.1:5", RpcMethod::kExecuteStream, caller).ok());
  const std::string before = caller.tenant;
  caller.tenant = "earlier";
  const absl::Status changed =
      authenticator().AdmitAgain(credentials, "ipv4:10.0.0.1:5", RpcMethod::kExecuteStream, caller);
  EXPECT_EQ(changed.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Refusals("changed_tenant"), 1);
  EXPECT_THAT(TakeLog(), AllOf(HasSubstr("\"reason\":\"changed_tenant\""), HasSubstr("\"method\":\"ExecuteStream\""),
                               HasSubstr("\"tenant\":\"earlier\""), HasSubstr("\"owner\":\"" + before + "\"")));
}

TEST_F(AuthenticatorTest, AClockThatIsPutBackHidesNobody) {
  authenticator().Replace(PolicyOf(callers_));
  for (int i = 0; i < 1000; ++i) Admit({});
  now_ -= absl::Hours(1);
  Admit({});
  now_ += absl::Seconds(1);
  for (int i = 0; i < 1000; ++i) Admit({});
  const std::string log = TakeLog();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), Audit::kBurst + Audit::kPerSecond + 1);
}

}  // namespace
}  // namespace tensord::server
