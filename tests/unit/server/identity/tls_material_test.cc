#include "server/identity/tls_material.h"

#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsMaterialTest : public ::testing::Test {
 protected:
  TlsMaterialTest() {
    const IssuedCertificate issued = ca_.Issue();
    settings_.set_certificate(folder_.Write("server.pem", issued.certificate + ca_.certificate(), 0644));
    settings_.set_key(folder_.Write("server.key", issued.key));
    settings_.set_client_ca(folder_.Write("clients.pem", ca_.certificate(), 0644));
  }

  std::string Refusal() const { return std::string(LoadTlsMaterial(settings_, absl::Now()).status().message()); }

  const PrivateFolder folder_;
  const CertificateAuthority ca_;
  ServerConfig::Tls settings_;
};

TEST_F(TlsMaterialTest, ReadsWhatIsRight) {
  const auto material = LoadTlsMaterial(settings_, absl::Now());
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_EQ(material->client_ca, ca_.certificate());
  EXPECT_GT(material->certificate_expiry, absl::Now() + absl::Minutes(50));
  EXPECT_LT(material->certificate_expiry, absl::Now() + absl::Minutes(70));
  EXPECT_LT(material->client_ca_expiry, absl::InfiniteFuture());
  settings_.clear_client_ca();
  EXPECT_EQ(LoadTlsMaterial(settings_, absl::Now())->client_ca, "");
}

TEST_F(TlsMaterialTest, RefusesTimesOutsideOfTheCertificates) {
  EXPECT_THAT(std::string(LoadTlsMaterial(settings_, absl::Now() + absl::Hours(2)).status().message()),
              AllOf(HasSubstr("server.pem"), HasSubstr("expired at")));
  EXPECT_THAT(std::string(LoadTlsMaterial(settings_, absl::Now() - absl::Hours(2)).status().message()),
              HasSubstr("not valid before"));
}

TEST_F(TlsMaterialTest, WhatRunsIsNotLookedAtAgain) {
  const auto running = LoadTlsMaterial(settings_, absl::Now());
  ASSERT_TRUE(running.ok());
  const absl::Time expired = absl::Now() + absl::Hours(2);
  const auto again = LoadTlsMaterial(settings_, expired, &*running);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *running);
  EXPECT_EQ(again->certificate_expiry, running->certificate_expiry);
  folder_.Write("clients.pem", CertificateAuthority("another").certificate(), 0644);
  EXPECT_FALSE(LoadTlsMaterial(settings_, expired, &*running).ok()) << "something has changed";
}

TEST_F(TlsMaterialTest, RefusesKeysOfOthersAndOpenOnes) {
  const std::string key = ca_.Issue().key;
  folder_.Write("server.key", key);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("server.key"), HasSubstr("not the key of")));
  folder_.Write("server.key", key, 0644);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("server.key"), HasSubstr("chmod o-rwx")));
  folder_.Write("server.key", "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n");
  EXPECT_THAT(Refusal(), HasSubstr("no private key"));
}

TEST_F(TlsMaterialTest, RefusesWhatIsNoCertificate) {
  const std::string good = ca_.Issue().certificate;
  folder_.Write("server.pem", "", 0644);
  EXPECT_THAT(Refusal(), HasSubstr("server.pem: is empty"));
  for (const std::string& wrong : {std::string("hello"), good.substr(0, good.size() / 2)}) {
    folder_.Write("server.pem", wrong, 0644);
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("server.pem"), HasSubstr("no certificate"))) << wrong;
  }
  std::string damaged = good;
  damaged[damaged.size() / 2] = '!';
  folder_.Write("server.pem", good + damaged, 0644);
  EXPECT_THAT(Refusal(), HasSubstr("certificate 2 cannot be read"));
}

TEST_F(TlsMaterialTest, RefusesAWrongClientCa) {
  folder_.Write("clients.pem", "", 0644);
  EXPECT_THAT(Refusal(), HasSubstr("clients.pem: is empty"));
  folder_.Write("clients.pem", "none", 0644);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("clients.pem"), HasSubstr("no certificate")));
  settings_.set_client_ca(folder_.PathOf("absent"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("absent"), HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace tensord::server
