#include "clients/cli/programs/profile_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Functions 1 "main", 2 "work", 3 "rest" at locations 10, 20, 30.
perftools::profiles::Profile Sample() {
  perftools::profiles::Profile profile;
  profile.add_string_table("");
  const std::vector<std::string> names = {"main", "work", "rest"};
  for (size_t i = 0; i < names.size(); ++i) {
    profile.add_string_table(names[i]);
    auto* function = profile.add_function();
    function->set_id(i + 1);
    function->set_name(static_cast<int64_t>(i) + 1);
    auto* location = profile.add_location();
    location->set_id((i + 1) * 10);
    location->add_line()->set_function_id(i + 1);
  }
  return profile;
}

void Add(const std::vector<uint64_t>& stack, int64_t count, perftools::profiles::Profile* profile) {
  auto* sample = profile->add_sample();
  for (const uint64_t location : stack) sample->add_location_id(location);
  sample->add_value(count);
}

TEST(ProfileTableTest, SelfAndCallees) {
  perftools::profiles::Profile profile = Sample();
  Add({20, 10}, 6, &profile);
  Add({20, 20, 10}, 1, &profile);  // calls itself
  Add({30, 10}, 2, &profile);
  Add({10}, 1, &profile);
  EXPECT_EQ(ProfileTable(profile, 10),
            "   self   with callees   function\n"
            "  70.0%          70.0%   work\n"
            "  20.0%          20.0%   rest\n"
            "  10.0%         100.0%   main\n");
  EXPECT_THAT(ProfileTable(profile, 1), Not(HasSubstr("rest")));
}

TEST(ProfileTableTest, WhatIsNotThereIsLeftOut) {
  perftools::profiles::Profile profile = Sample();
  profile.add_function()->set_id(4);
  profile.mutable_function(3)->set_name(99);
  auto* location = profile.add_location();
  location->set_id(40);
  location->add_line()->set_function_id(4);
  Add({40, 10}, 1, &profile);
  Add({77}, 1, &profile);
  profile.add_sample();
  const std::string table = ProfileTable(profile, 10);
  EXPECT_THAT(table, HasSubstr("main"));
  EXPECT_EQ(ProfileTable({}, 10), "   self   with callees   function\n");
}

}  // namespace
}  // namespace tensord::cli
