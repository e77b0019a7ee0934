#include "grammar/schema_uri.h"

#include <gtest/gtest.h>

namespace cria::grammar {
namespace {

// The examples of RFC 3986, section 5.4, without fragments.
TEST(SchemaUriTest, ResolvesReferences) {
  const auto resolved = [](std::string_view reference) {
    return ResolveUri("http://a/b/c/d;p?q", reference);
  };
  EXPECT_EQ(resolved("g:h"), "g:h");
  EXPECT_EQ(resolved("g"), "http://a/b/c/g");
  EXPECT_EQ(resolved("./g"), "http://a/b/c/g");
  EXPECT_EQ(resolved("g/"), "http://a/b/c/g/");
  EXPECT_EQ(resolved("/g"), "http://a/g");
  EXPECT_EQ(resolved("//g"), "http://g");
  EXPECT_EQ(resolved("?y"), "http://a/b/c/d;p?y");
  EXPECT_EQ(resolved("g?y"), "http://a/b/c/g?y");
  EXPECT_EQ(resolved("g;x?y#s"), "http://a/b/c/g;x?y");
  EXPECT_EQ(resolved(""), "http://a/b/c/d;p?q");
  EXPECT_EQ(resolved("#s"), "http://a/b/c/d;p?q");
  EXPECT_EQ(resolved("."), "http://a/b/c/");
  EXPECT_EQ(resolved("./"), "http://a/b/c/");
  EXPECT_EQ(resolved(".."), "http://a/b/");
  EXPECT_EQ(resolved("../g"), "http://a/b/g");
  EXPECT_EQ(resolved("../../g"), "http://a/g");
  EXPECT_EQ(resolved("../../../g"), "http://a/g");
  EXPECT_EQ(resolved("/./g"), "http://a/g");
  EXPECT_EQ(resolved("g/./h"), "http://a/b/c/g/h");
  EXPECT_EQ(resolved("g/../h"), "http://a/b/c/h");
}

TEST(SchemaUriTest, ResolvesAgainstOtherBases) {
  EXPECT_EQ(ResolveUri("", "a/b.json"), "a/b.json");
  EXPECT_EQ(ResolveUri("dir/a.json", "b.json"), "dir/b.json");
  EXPECT_EQ(ResolveUri("urn:uuid:1", "#/$defs/a"), "urn:uuid:1");
  EXPECT_EQ(ResolveUri("urn:uuid:1", "urn:uuid:2#x"), "urn:uuid:2");
  EXPECT_EQ(ResolveUri("http://host", "a"), "http://host/a");
  EXPECT_EQ(ResolveUri("file:///c:/a/b.json", "c.json"), "file:///c:/a/c.json");
}

TEST(SchemaUriTest, DecodesPercents) {
  EXPECT_EQ(PercentDecoded("a%25b%2F%c3%A9"), "a%b/\xC3\xA9");
  EXPECT_EQ(PercentDecoded("%"), "%");
  EXPECT_EQ(PercentDecoded("%4"), "%4");
  EXPECT_EQ(PercentDecoded("%zz%41"), "%zzA");
}

}  // namespace
}  // namespace cria::grammar
