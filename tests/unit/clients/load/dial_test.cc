#include "clients/load/dial.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tensord::load {
namespace {

TEST(Dial, RefusesWhatIsNoPort) {
  for (const char* target : {"127.0.0.1:65536", "127.0.0.1:75000", "127.0.0.1:18446744073709551616"}) {
    const absl::Status refused = Dial(target, absl::Seconds(1)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  }
}

}  // namespace
}  // namespace tensord::load
