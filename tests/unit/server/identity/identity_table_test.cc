#include "server/identity/identity_table.h"

#include <string>

#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string HashOf(const std::string& token) { return Fingerprint::Of(token).ToHex(); }

std::string MessageOf(const absl::StatusOr<IdentityTable>& table) { return std::string(table.status().message()); }

TEST(IdentityTableTest, FindsCallersByWhatTheyShow) {
  const auto table = IdentityTable::Parse(
      "# callers\n\n"
      "team-a execute,read " +
      HashOf("secret-a") +
      "   # since March\r\n"
      "\tteam-b\texecute\tspiffe://example.org/b\n"
      "ops read,admin dns:ops.example.org\n"
      "ops admin cn:operator");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 4u);
  EXPECT_EQ(table->num_tenants(), 2u) << "ops runs nothing";
  const Caller* const a = table->FindToken("secret-a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->tenant, "team-a");
  EXPECT_EQ(a->roles, Roles({Role::kExecute, Role::kRead}));
  for (const char* wrong : {"", "secret-", "secret-aa", "Secret-a", "spiffe://example.org/b"}) {
    EXPECT_EQ(table->FindToken(wrong), nullptr) << wrong;
  }
  EXPECT_EQ(table->FindToken(HashOf("secret-a")), nullptr) << "the hash is no token";
  EXPECT_EQ(table->FindCertificate("spiffe://example.org/b")->tenant, "team-b");
  EXPECT_EQ(table->FindCertificate("dns:ops.example.org")->roles, Roles({Role::kRead, Role::kAdmin}));
  EXPECT_EQ(table->FindCertificate("cn:operator")->roles, Roles({Role::kAdmin}));
  EXPECT_EQ(table->FindCertificate("operator"), nullptr);
  EXPECT_EQ(table->FindCertificate("dns:operator"), nullptr) << "another kind of name";
}

TEST(IdentityTableTest, RefusesWhatItDoesNotUnderstand) {
  const std::string hash = HashOf("t");
  const struct {
    std::string line;
    const char* says;
  } cases[] = {
      {"team-a execute", "2 words"},
      {"team-a execute " + hash + " more", "4 words"},
      {"team/a execute " + hash, "a tenant is"},
      {std::string(65, 'a') + " execute " + hash, "a tenant is"},
      {"team-a root " + hash, "roles are"},
      {"team-a execute,execute " + hash, "roles are"},
      {"team-a execute, " + hash, "roles are"},
      {"team-a , " + hash, "roles are"},
      {"team-a execute the-token-itself", "a credential is"},
      {"team-a execute " + hash.substr(1), "a credential is"},
      {"team-a execute " + std::string(64, 'A'), "a credential is"},
      {"team-a execute dns:", "a credential is"},
      {"team-a execute email:a@b", "a credential is"},
      {"team-a execute cn:" + std::string(3000, 'a'), "a credential is"},
  };
  for (const auto& c : cases) {
    const std::string message = MessageOf(IdentityTable::Parse("# first\n" + c.line));
    EXPECT_THAT(message, AllOf(HasSubstr("line 2"), HasSubstr(c.says))) << c.line;
    EXPECT_THAT(message, Not(HasSubstr("the-token-itself")));
  }
  EXPECT_THAT(MessageOf(IdentityTable::Parse("a read " + hash + "\nb read " + hash)),
              AllOf(HasSubstr("line 2"), HasSubstr("earlier")));
  EXPECT_THAT(MessageOf(IdentityTable::Parse("a read cn:x\nb read cn:x")), HasSubstr("earlier"));
}

TEST(IdentityTableTest, HasABound) {
  std::string text;
  for (size_t i = 0; i < IdentityTable::kMaxEntries; ++i) text += "a read cn:" + std::to_string(i) + "\n";
  EXPECT_TRUE(IdentityTable::Parse(text).ok());
  EXPECT_THAT(MessageOf(IdentityTable::Parse(text + "a read cn:x")), HasSubstr("more than 10000"));
}

TEST(IdentityTableTest, FilesArePrivate) {
  const PrivateFolder folder;
  const std::string line = "a read " + HashOf("t") + "\n";
  for (const mode_t mode : {0600, 0400, 0640, 0440}) {
    EXPECT_TRUE(IdentityTable::Load(folder.Write("callers", line, mode)).ok()) << mode;
  }
  for (const mode_t mode : {0644, 0604, 0660, 0602, 0666}) {
    const std::string path = folder.Write("callers", line, mode);
    EXPECT_THAT(MessageOf(IdentityTable::Load(path)), AllOf(HasSubstr(path), HasSubstr("chmod"))) << mode;
  }
  EXPECT_THAT(MessageOf(IdentityTable::Load(folder.PathOf("none"))), HasSubstr("cannot be read"));
  EXPECT_THAT(MessageOf(IdentityTable::Load("/dev/null")), HasSubstr("is no file"));
  EXPECT_THAT(MessageOf(IdentityTable::Load(folder.Write("callers", "a b", 0600))), HasSubstr("callers: line 1"));
  EXPECT_THAT(MessageOf(IdentityTable::Load(folder.Write("callers", ""))), HasSubstr("callers: is empty"));
  EXPECT_THAT(MessageOf(IdentityTable::Load(folder.Write("callers", "# a\n"))), HasSubstr("callers: names no caller"));
  EXPECT_THAT(MessageOf(IdentityTable::Load(folder.Write("callers", std::string(5 << 20, '#')))), HasSubstr("larger"));
}

TEST(RolesTest, PrintAsTheyAreRead) {
  for (const char* text : {"execute", "read", "admin", "execute,read", "execute,read,admin"}) {
    EXPECT_EQ(Roles::Parse(text)->ToString(), text);
  }
  EXPECT_EQ(*Roles::Parse("admin,execute"), Roles({Role::kExecute, Role::kAdmin}));
  EXPECT_FALSE(Roles::Parse("").ok());
  EXPECT_FALSE(Roles().Has(Role::kRead));
  EXPECT_TRUE(Roles::All().Has(Role::kAdmin));
}

}  // namespace
}  // namespace tensord::server
