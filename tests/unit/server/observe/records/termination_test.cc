#include "server/observe/records/termination.h"

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

// Thrown where nobody catches it.
template <typename Exception>
void EndBy(const Exception& exception) {
  TellWhyItTerminates();
  std::thread([&exception] { throw exception; }).join();
}

TEST(TerminationDeathTest, SaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(EndBy(std::bad_alloc()), "\"event\":\"terminated\".*no more memory .ulimit -v");
  EXPECT_DEATH(EndBy(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
               "no more threads .ulimit -u");
  EXPECT_DEATH(EndBy(std::runtime_error("the library's own words")), "\"message\":\"the library's own words\"");
}

}  // namespace
}  // namespace tensord::server
