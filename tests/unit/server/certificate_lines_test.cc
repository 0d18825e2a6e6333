#include "server/certificate_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TlsMaterial MaterialThatEnds(absl::Time server, absl::Time client_ca = absl::InfiniteFuture()) {
  TlsMaterial material;
  material.certificate_expiry = server;
  material.client_ca_expiry = client_ca;
  return material;
}

class CertificateLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    read_ = fdopen(ends_[0], "r");
    log_ = std::make_unique<Log>(Log::Options{.descriptor = ends_[1]});
    alarms_ = std::make_unique<Alarms>();
    lines_ = std::make_unique<CertificateLines>(log_.get(), alarms_.get());
  }
  void TearDown() override { fclose(read_); }
  // Waits for it; empty at the end of the log.
  std::string Line() {
    char line[1024];
    return fgets(line, sizeof(line), read_) == nullptr ? "" : line;
  }
  void EndLog() {
    alarms_.reset();
    lines_.reset();
    log_.reset();
    close(ends_[1]);
  }

  int ends_[2] = {-1, -1};
  FILE* read_ = nullptr;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Alarms> alarms_;
  std::unique_ptr<CertificateLines> lines_;
};

TEST_F(CertificateLinesTest, EachEndIsToldOnce) {
  const absl::Time now = absl::Now();
  lines_->Watch(MaterialThatEnds(now - absl::Hours(1), absl::FromUnixSeconds(1)));
  EXPECT_THAT(Line(), AllOf(HasSubstr("\"certificate expired\""), HasSubstr("tls.certificate ended at ")));
  EXPECT_THAT(Line(), HasSubstr("a certificate of tls.client_ca ended at 1970-01-01T00:00:01+00:00"));
  EndLog();
  EXPECT_EQ(Line(), "");
}

TEST_F(CertificateLinesTest, ItIsToldWhenItsTimeComes) {
  const absl::Time end = absl::Now() + absl::Milliseconds(20);
  lines_->Watch(MaterialThatEnds(absl::InfiniteFuture(), end));
  EXPECT_THAT(Line(), HasSubstr("tls.client_ca ended"));
  EXPECT_GE(absl::Now(), end);
  EndLog();
  EXPECT_EQ(Line(), "");
}

TEST_F(CertificateLinesTest, OfThoseInUseAlone) {
  const absl::Time now = absl::Now();
  lines_->Watch(MaterialThatEnds(now + absl::Hours(2), now + absl::Hours(3)));
  lines_->Watch(MaterialThatEnds(now + absl::Hours(2), now - absl::Hours(1)));
  EXPECT_THAT(Line(), HasSubstr("tls.client_ca ended"));
  lines_->Watch(MaterialThatEnds(now + absl::Hours(2)));
  EndLog();
  EXPECT_EQ(Line(), "") << "what has not ended is not told of";
}

}  // namespace
}  // namespace tensord::server
