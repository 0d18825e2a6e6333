#include "proto/command_line/nearest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::wire {
namespace {

const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{"run", "compile", "programs", "profile", "drain"};
  return *names;
}

TEST(NearestName, TakesOneMistakeInThreeLetters) {
  EXPECT_EQ(NearestName("rnu", Names()), "run") << "exchanged";
  EXPECT_EQ(NearestName("drian", Names()), "drain");
  EXPECT_EQ(NearestName("compil", Names()), "compile") << "missing";
  EXPECT_EQ(NearestName("programms", Names()), "programs") << "added";
  EXPECT_EQ(NearestName("compute", Names()), "compile") << "two replaced";
  EXPECT_EQ(NearestName("compost", Names()), "") << "three";
}

TEST(NearestName, CompletesWhatOneNameBeginsWith) {
  EXPECT_EQ(NearestName("comp", Names()), "compile");
  EXPECT_EQ(NearestName("pro", Names()), "") << "two begin so";
  EXPECT_EQ(NearestName("c", Names()), "");
}

TEST(NearestName, FindsNothingInWordsThatAreNotAlike) {
  EXPECT_EQ(NearestName("", Names()), "");
  EXPECT_EQ(NearestName("y", std::vector<std::string>{"x"}), "") << "one letter has no likeness to another";
  EXPECT_EQ(NearestName(std::string(1'000'000, 'r'), Names()), "");
  EXPECT_EQ(NearestName("run", {}), "");
}

TEST(NearestName, PrefersTheNearestAndThenTheFirst) {
  EXPECT_EQ(NearestName("tarket", std::vector<std::string>{"markets", "market", "target"}), "market");
  EXPECT_EQ(NearestName("markets", std::vector<std::string>{"market", "markets"}), "markets");
}

TEST(DidYouMean, EndsAMessage) {
  EXPECT_EQ(DidYouMean("drian", Names()), "; did you mean drain?");
  EXPECT_EQ(DidYouMean("drian", Names(), "--"), "; did you mean --drain?");
  EXPECT_EQ(DidYouMean("xyz", Names()), "");
}

}  // namespace
}  // namespace tensord::wire
