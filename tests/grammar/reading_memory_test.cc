// What reading a constraint takes besides the expressions, for the largest that there may be.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "grammar/constraint_source.h"
#include "grammar/expressions.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/pattern.h"
#include "support/sanitizers.h"

#if defined(__GLIBC__) && !CRIA_HEAP_IS_SANITIZED

namespace {

// The heap's own word before each block is counted, too.
size_t held_bytes = 0;
size_t peak_bytes = 0;

void* Take(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  held_bytes += malloc_usable_size(block) + sizeof(size_t);
  peak_bytes = std::max(peak_bytes, held_bytes);
  return block;
}

void Give(void* block) {
  if (block != nullptr) held_bytes -= malloc_usable_size(block) + sizeof(size_t);
  std::free(block);
}

}  // namespace

void* operator new(size_t bytes) { return Take(bytes); }
void* operator new[](size_t bytes) { return Take(bytes); }
void operator delete(void* block) noexcept { Give(block); }
void operator delete[](void* block) noexcept { Give(block); }
void operator delete(void* block, size_t) noexcept { Give(block); }
void operator delete[](void* block, size_t) noexcept { Give(block); }

namespace cria::grammar {
namespace {

using Kind = ConstraintKind;

std::string Repeated(const std::string& piece, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += piece;
  return text;
}

std::string List(const std::string& item, size_t count) {
  return "[" + Repeated(item + ",", count - 1) + item + "]";
}

// As many as a text may have.
std::string LongList(const std::string& item) {
  return List(item, (kMaxSchemaBytes - 100) / (item.size() + 1));
}

// "n0": {}, "n1": {}, …
std::string Names(const std::string& prefix, size_t count, const std::string& value) {
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    names += "\"" + prefix + std::to_string(i) + "\":" + value + ",";
  }
  return names;
}

// Ninety schemas within each other, each together with the schema "a".
std::string Nested(const std::string& a, const std::string& before, const std::string& after) {
  std::string defined;
  for (int i = 0; i < 90; ++i) {
    defined += "\"d" + std::to_string(i) + R"(":{"allOf":[{"$ref":"#/$defs/a"},{)" + before +
               R"({"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"}" + after + "}]},";
  }
  return R"({"$ref":"#/$defs/d0","$defs":{)" + defined + R"("d90":{},"a":{)" + a + "}}}";
}

std::vector<std::string> LargeSchemas() {
  std::vector<std::string> schemas;
  const std::string choices = List(R"({"anyOf":[{},{}]})", 150);
  for (const char* const value :
       {"1", "{}", "[]", "\"\"", "1.5", R"({"a":1})", "[1]", "[[]]", R"({"a":{}})"}) {
    for (const size_t count : {2'000u, 4'000u, 8'000u}) {
      schemas.push_back(R"({"enum":)" + List(value, count) + "}");
      schemas.push_back(R"({"not":{"enum":)" + List(value, count) + R"(},"allOf":)" + choices +
                        "}");
    }
    schemas.push_back(R"({"enum":)" + LongList(value) + "}");
  }
  for (const char* const schema : {"{}", R"({"a":{}})", R"({"enum":[1]})",
                                   R"({"type":"object","properties":{"a":{"minimum":1}}})"}) {
    for (const char* const keyword : {"anyOf", "oneOf", "allOf", "prefixItems"}) {
      schemas.push_back("{\"" + std::string(keyword) + "\":" + LongList(schema) + "}");
      schemas.push_back("{\"" + std::string(keyword) + "\":" + List(schema, 3'000) + "}");
    }
  }
  // Each alternative copies what is demanded.
  for (const size_t count : {500u, 1'000u, 4'000u, 8'000u, 16'000u, 40'000u}) {
    schemas.push_back(R"({"type":"object","required":)" + List("\"\"", count) + R"(,"allOf":)" +
                      choices + "}");
  }
  for (const size_t count : {50u, 130u, 300u, 600u, 2'500u}) {
    schemas.push_back(R"({"type":"object","properties":{)" + Names("n", count, "{}") +
                      R"("z":1}})");
    schemas.push_back(
        Nested(R"("type":"object","properties":{)" + Names("n", count, "{}") + R"("z":{}})",
               R"("properties":{"z":)", "}"));
    schemas.push_back(Nested(R"("prefixItems":)" + List("true", count),
                             R"("prefixItems":[)" + Repeated("{},", count), "]"));
  }
  // Identifiers, each of them with all of its base.
  const std::string base = R"({"$id":"http://a/)" + std::string(100'000, 'x') + "/\",";
  schemas.push_back(base + R"("$defs":{)" + Names("n", 5'000, R"({"$id":"a"})") + R"("z":{}}})");
  schemas.push_back(base + R"("anyOf":)" + List(R"({"$ref":"a"})", 4'000) + "}");
  schemas.push_back(R"({"$ref":")" + std::string(250'000, 'x') + "\"}");
  // Values as far as they go, and then a pattern.
  for (const size_t count : {1u, 3'000u, 6'000u}) {
    for (const std::string& pattern : {Repeated("ab|", 21'000), Repeated("a?", 30'000),
                                       Repeated("a|", 20'000) + Repeated(R"(\\p{L})", 90)}) {
      schemas.push_back(R"({"enum":)" + List("[]", count) + R"(,"patternProperties":{")" + pattern +
                        R"(":{}},"pattern":")" + pattern + "\"}");
    }
  }
  // All of these at once: values, in a keyword that means nothing, alternatives, and a pattern.
  for (const size_t count : {20'000u, 30'000u, 40'000u}) {
    schemas.push_back(R"({"x":)" + List("[]", count) + R"(,"required":)" + List("\"\"", 500) +
                      R"(,"allOf":)" + List(R"({"anyOf":[{},{}]})", 40) + R"(,"pattern":")" +
                      Repeated("ab|", 21'000) + "\"}");
  }
  return schemas;
}

std::vector<std::string> LargePatterns() {
  std::vector<std::string> patterns;
  for (const std::string piece : {"a", "|", "a?", "ab|", "(a|b)", "()", "(?:)", "[ab]", "\\d",
                                  "\\b|", "(?=a)", "a{2}", "\\p{L}", "\\p{L}\\b", "[^\\P{L}a]"}) {
    for (const size_t bytes : {size_t{700}, size_t{2'000}, kMaxPatternBytes}) {
      patterns.push_back(Repeated(piece, bytes / piece.size()));
    }
  }
  patterns.push_back("[" + Repeated("ac", kMaxPatternBytes / 2 - 1) + "]");
  return patterns;
}

std::vector<std::string> LargeGrammars() {
  std::vector<std::string> grammars;
  const auto add = [&](const std::string& piece, const std::string& end) {
    grammars.push_back("root ::= " + Repeated(piece, (kMaxGbnfBytes - 100) / piece.size()) + end);
  };
  for (const char* const piece : {"\"a\"|", "|", "\"a\" ", "[a] ", "a|", "a "}) {
    add(piece, "\"b\"\na ::= \"a\"");
  }
  grammars.push_back("root ::= \"" + std::string(kMaxGbnfBytes - 100, 'a') + "\"");
  grammars.push_back("root ::= [" + Repeated("ac", (kMaxGbnfBytes - 100) / 2) + "]");
  std::string rules = "root ::= b\n";
  for (int i = 0; i < 16'000; ++i) rules += "a" + std::to_string(i) + "::=b\n";
  grammars.push_back(rules);
  // Each of the groups has a list of what it has so far.
  grammars.push_back("root ::= " + Repeated(Repeated("a ", 600) + "(", 199) + "\"a\"" +
                     Repeated(")", 199) + "\na ::= \"x\"\n");
  for (const char* const value : {"{}", "[]", "1", "\"\""}) {
    grammars.push_back("root ::= %json {\"enum\":" +
                       List(value, (kMaxGbnfBytes - 200) / (std::string(value).size() + 1)) + "}");
  }
  return grammars;
}

class ReadingMemory : public testing::Test {
 protected:
  void Expect(Kind kind, const std::vector<std::string>& texts) {
    size_t most = 0;
    for (const std::string& text : texts) {
      Expressions expressions(memory_);
      const size_t before = peak_bytes = held_bytes;
      // Whether it is allowed is not the question.
      static_cast<void>(ReadConstraint(expressions, {.kind = kind, .text = text}));
      const size_t taken = peak_bytes - before;
      EXPECT_LE(taken, kMaxReadingBytes)
          << text.substr(0, 60) << "…"
          << text.substr(text.size() - std::min<size_t>(60, text.size())) << ", " << text.size()
          << " bytes";
      most = std::max(most, taken);
    }
    std::printf("at most %zu of %zu bytes\n", most, kMaxReadingBytes);
  }

 private:
  // As much as the matcher gives them.
  std::vector<std::byte> memory_ = std::vector<std::byte>(size_t{5} << 19);
};

TEST_F(ReadingMemory, OfSchemasIsBounded) { Expect(Kind::kJsonSchema, LargeSchemas()); }

TEST_F(ReadingMemory, OfPatternsIsBounded) { Expect(Kind::kRegex, LargePatterns()); }

TEST_F(ReadingMemory, OfGrammarsIsBounded) { Expect(Kind::kGbnf, LargeGrammars()); }

}  // namespace
}  // namespace cria::grammar

#else

TEST(ReadingMemory, IsBounded) {
  GTEST_SKIP() << "a sanitizer owns the heap, or the C library is not glibc";
}

#endif
