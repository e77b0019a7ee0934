#include "jinja/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "jinja/template.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

// What the template writes, of which `x` is the variable.
std::string ReadAndRender(const std::string& json, const std::string& source) {
  Context context(Limits{}, nullptr);
  const auto value = ReadJson(context, json);
  if (!value) return value.error().message();
  const Variable variable = {"x", *value};
  const auto segments = Template(source).Render(context, {&variable, 1});
  if (!segments) return segments.error().message();
  std::string text;
  for (const Segment& segment : *segments) text += segment.text;
  return text;
}

std::string ReadAndWrite(const std::string& json) {
  return ReadAndRender(json, "{{ x | tojson }}");
}

std::string ReadString(const std::string& json) {
  Context context(Limits{}, nullptr);
  const auto value = ReadJson(context, json);
  if (!value) return value.error().message();
  EXPECT_TRUE(value->is(Kind::kString));
  return std::string(Flat(context, *value->text));
}

TEST(JsonReaderTest, ReadsEveryKindOfValue) {
  for (const char* json : {"null", "true", "false", "0", "-7", "9223372036854775807",
                           "-9223372036854775808", "1.5", "-0.25", "\"\"", "\"text\"", "[]", "{}",
                           "[1, [2, []], {\"a\": null}]", R"({"a": {"b": [true, "c"]}, "": 1})"}) {
    EXPECT_EQ(ReadAndWrite(json), json);
  }
  EXPECT_EQ(ReadAndWrite(" \t\r\n[ 1 ,2\n] "), "[1, 2]");
  EXPECT_EQ(ReadAndWrite("1e2"), "100.0");
  EXPECT_EQ(ReadAndWrite("1E+2"), "100.0");
  EXPECT_EQ(ReadAndWrite("25e-1"), "2.5");
  EXPECT_EQ(ReadAndWrite("-0"), "0");
  EXPECT_EQ(ReadAndWrite("1e999"), "Infinity");
  EXPECT_EQ(ReadAndWrite("0.1234567890123456789"), "0.12345678901234568");
}

// Python's whole numbers are exact, too.
TEST(JsonReaderTest, WholeNumbersOfMoreThan64BitsAreExact) {
  const std::string large = "9" + std::string(400, '0');
  for (const std::string& number :
       {std::string("9223372036854775808"), std::string("18446744073709551615"),
        std::string("-9223372036854775809"), large, "-" + large}) {
    EXPECT_EQ(ReadAndWrite(number), number);
    EXPECT_EQ(ReadAndRender("[" + number + "]", "{{ x }}{{ x[0] ~ '' }}{{ x[0] | int }}"),
              "[" + number + "]" + number + number);
    EXPECT_EQ(ReadAndRender(number, "{{ x is integer and x is number and x is not float and x }}"),
              number);
  }
  const auto print = [](const std::string& expression) {
    return ReadAndRender(R"({"a": 18446744073709551615, "b": 18446744073709551616,
        "f": 18446744073709551616.0, "c": -9223372036854775809, "g": -9223372036854775808.0,
        "d": 9007199254740993, "e": 9007199254740992.0, "i": 1e999})",
                         "{{ " + expression + " }}");
  };
  EXPECT_EQ(print("[x.a == x.a, x.a == x.b, x.b == x.f, x.a == x.f, x.f == x.b, x.c == x.g]"),
            "[True, False, True, False, True, False]");
  EXPECT_EQ(print("[x.a < x.b, x.b < x.a, x.a < x.f, x.b < x.f, x.f > x.a, x.c < x.g, x.c < 0]"),
            "[True, False, True, False, True, True, True]");
  EXPECT_EQ(print("[x.b < x.i, -x.i < x.b, x.b == x.i, x.d == x.e, x.e < x.d, 0 == -0.0]"),
            "[True, True, False, False, True, True]");
  EXPECT_EQ(print("[x.b, 1, x.c, x.a, -1.5] | sort"),
            "[-9223372036854775809, -1.5, 1, 18446744073709551615, 18446744073709551616]");
  EXPECT_EQ(
      print("[x.b, x.a] | min ~ ' ' ~ x.a | float ~ ' ' ~ x.a | abs ~ ' ' ~ x.a | round"),
      "18446744073709551615 1.8446744073709552e+19 18446744073709551615 18446744073709551615");
  EXPECT_EQ(print("x.a in [1, x.a] and [1, 2][x.a] is undefined and {x.a: 1}[x.a] == 1"), "True");
  for (const char* expression :
       {"x.a + 1", "1 - x.a", "x.a * 1.0", "x.a / 2", "x.a // 2", "x.a % 2", "2 ** x.a", "-x.a",
        "[x.a, 1] | sum", "x.a is odd", "x.c | abs", "x.a | round(-1)", "x.a | round(1, 'ceil')"}) {
    EXPECT_NE(print(expression).find("more than 64 bits"), std::string::npos) << print(expression);
  }
  EXPECT_NE(print("'ab' * x.a").find("is not possible"), std::string::npos);
  EXPECT_NE(ReadAndRender(large, "{{ x | float }}").find("too large for a float"),
            std::string::npos);
}

TEST(JsonReaderTest, ExactNumbersKeepTheirText) {
  const std::string json = "[1, -1, 9223372036854775808, 1.50, 1e2, 1E400, 0.1234567890123456789]";
  Context context(Limits{}, nullptr);
  const auto list = ReadJson(context, json, JsonNumbers::kExact);
  ASSERT_TRUE(list) << list.error().message();
  const auto items = list->list->items;
  EXPECT_TRUE(items[0].is(Kind::kInt) && items[1].is(Kind::kInt));
  const std::string_view texts[] = {"9223372036854775808", "1.50", "1e2", "1E400",
                                    "0.1234567890123456789"};
  for (size_t i = 2; i < items.size(); ++i) {
    ASSERT_TRUE(items[i].is(Kind::kNumeral));
    EXPECT_EQ(*items[i].digits, texts[i - 2]);
  }
}

TEST(JsonReaderTest, ResolvesEscapes) {
  EXPECT_EQ(ReadString(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(ReadString(R"("\u0041\u00e9\u20AC")"), "A\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(ReadString(R"("\ud83e\udd99!")"), "\xf0\x9f\xa6\x99!");
  EXPECT_EQ(ReadString(R"("a\u0000b")"), std::string("a\0b", 3));
  // Halves of pairs.
  EXPECT_EQ(ReadString(R"("\ud83e")"), "\xef\xbf\xbd");
  EXPECT_EQ(ReadString(R"("\ud83e\u0041")"), "\xef\xbf\xbd\x41");
  EXPECT_EQ(ReadString(R"("\udd99\ud83e\udd99")"), "\xef\xbf\xbd\xf0\x9f\xa6\x99");
  // Bytes that are not UTF-8 stay as they are, as in messages.
  EXPECT_EQ(ReadString("\"\xff\""), "\xff");
}

TEST(JsonReaderTest, TheLastValueOfANameCounts) {
  EXPECT_EQ(ReadAndWrite(R"({"a": 1, "b": 2, "a": 3, "\u0062": 4})"), R"({"a": 3, "b": 4})");
}

TEST(JsonReaderTest, NamesAreAttributes) {
  Context context(Limits{}, nullptr);
  const auto value = ReadJson(context, R"({"name": "n", "\u0061b": "e"})");
  ASSERT_TRUE(value);
  const Variable variable = {"x", *value};
  const auto segments =
      Template("{{ x.name }}{{ x.ab }}{{ x['ab'] }}").Render(context, {&variable, 1});
  ASSERT_TRUE(segments) << segments.error().message();
  ASSERT_EQ(segments->size(), 1u);
  EXPECT_EQ((*segments)[0].text, "nee");
  // Like a message's, their text never becomes a special token.
  EXPECT_FALSE((*segments)[0].is_trusted);
}

TEST(JsonReaderTest, WhatIsNotJsonIsRefusedWithItsPlace) {
  const auto expect_refused = [](const std::string& json, const std::string& sentence) {
    SCOPED_TRACE(json);
    Context context(Limits{}, nullptr);
    const auto refused = ReadJson(context, json);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(refused.error().message(), sentence);
  };
  expect_refused("", "byte 0: nothing where a value must be");
  expect_refused("  ", "byte 2: nothing where a value must be");
  expect_refused("nul", "byte 0: what is not a value");
  expect_refused("True", "byte 0: what is not a value");
  expect_refused("'a'", "byte 0: what is not a value");
  expect_refused("1 2", "byte 2: more text after the value");
  expect_refused("{} }", "byte 3: more text after the value");
  for (const char* number : {"-", "+1", ".5", "1.", "1e", "1e+", "-a", "1.e5"}) {
    expect_refused(number, "byte 0: what is not a value");
  }
  expect_refused("01", "byte 1: more text after the value");
  expect_refused("[1 2]", "byte 3: no comma or closing bracket after an item");
  expect_refused("[1,]", "byte 3: what is not a value");
  expect_refused("[", "byte 1: nothing where a value must be");
  expect_refused("[1", "byte 2: no comma or closing bracket after an item");
  expect_refused("{\"a\" 1}", "byte 5: no colon after a name");
  expect_refused("{\"a\"", "byte 4: no colon after a name");
  expect_refused("{a: 1}", "byte 1: a name that is not a string");
  expect_refused("{\"a\": 1,}", "byte 8: a name that is not a string");
  expect_refused("\"a", "byte 2: a string without an end");
  expect_refused("\"\\", "byte 2: an unknown escape in a string");
  expect_refused("\"\\x\"", "byte 2: an unknown escape in a string");
  expect_refused("\"\\u12g4\"", "byte 3: an escape without four hexadecimal digits");
  expect_refused("\"\\ud83e\\u12\"", "byte 9: an escape without four hexadecimal digits");
  expect_refused("\"a\nb\"", "byte 2: a control character in a string");
  expect_refused(std::string("\"a\0b\"", 5), "byte 2: a control character in a string");
  expect_refused(std::string("1\0", 2), "byte 1: more text after the value");
}

TEST(JsonReaderTest, DepthAndWorkAreLimited) {
  const std::string deep = std::string(90, '[') + std::string(90, ']');
  EXPECT_EQ(ReadAndWrite(deep), deep);
  Context context(Limits{}, nullptr);
  const std::string too_deep(1'000'000, '[');
  const auto refused = ReadJson(context, too_deep);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("nested too deeply"), std::string::npos);

  Context small({.steps = 100}, nullptr);
  std::string many = "[0";
  for (int i = 0; i < 200; ++i) many += ",0";
  const auto too_much = ReadJson(small, many + "]");
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), ErrorCode::kOutOfRange);
}

// Texts that are JSON, but for a byte: another reader must agree on which of them are.
TEST(JsonReaderTest, AgreesWithAnotherReader) {
  const std::string good =
      R"({"a": [1, -2.5e3, true, null, "x\n\u00e9"], "b": {"c": false, "": []}})";
  std::mt19937 random(3);
  const std::string letters = "{}[]\",:\\ue0-.1tfn ";
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (size_t changes = 1 + random() % 2; changes > 0; --changes) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        default:
          text.erase(at, 1);
      }
    }
    Context context(Limits{}, nullptr);
    const auto expected = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto value = ReadJson(context, text);
    // The other reader refuses halves of surrogate pairs and numbers beyond a double, which do not
    // occur.
    ASSERT_EQ(value.has_value(), !expected.is_discarded()) << text;
    if (!value) continue;
    ++accepted;
    EXPECT_EQ(nlohmann::json::parse(ReadAndWrite(text)), expected) << text;
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace cria::jinja
