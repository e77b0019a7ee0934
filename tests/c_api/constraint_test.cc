// Answers that must match a JSON Schema, a grammar or a regular expression.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

using testing::AnyOf;
using testing::MatchesRegex;

constexpr std::string_view kSchema = R"({"type": "object", "properties": {
  "name": {"enum": ["Cria", "llama"]}, "age": {"type": "integer", "minimum": 10, "maximum": 99}},
  "required": ["name", "age"], "additionalProperties": false})";
constexpr const char* kObject =
    "\\{[ \n]*\"name\":[ \n]*\"(Cria|llama)\",[ \n]*\"age\":[ \n]*[1-9][0-9][ \n]*\\}";

cria_model_options WithConstraints(uint64_t max_constraints = 1) {
  cria_model_options options = DemoOptions();
  options.max_constraints = max_constraints;
  return options;
}

cria_generation_options Constrained(int32_t kind, std::string_view text) {
  cria_generation_options options = Greedy();
  options.constraint_kind = kind;
  options.constraint = text.data();
  options.constraint_bytes = text.size();
  return options;
}

class ConstraintOfCTest : public testing::Test {
 protected:
  void ExpectRefused(const cria_generation_options& options, cria_status status,
                     std::string_view words) {
    ExpectFailure(Complete(model_, "llama", options).status, status, words);
  }

  const ModelPtr model_ = LoadModel(WithConstraints());
};

TEST_F(ConstraintOfCTest, AnAnswerIsValidByItsSchema) {
  const ChatPtr chat = MakeChat(model_, Constrained(CRIA_CONSTRAINT_JSON_SCHEMA, kSchema));
  const Answer answer = Send(chat, kQuestion);
  ASSERT_EQ(answer.status, CRIA_OK) << cria_error_message();
  EXPECT_THAT(answer.text, MatchesRegex(kObject));
  EXPECT_EQ(answer.result.stop_reason, CRIA_STOP_END);
  cria_message kept = {};
  ASSERT_EQ(cria_chat_get_message(chat.get(), 1, &kept), CRIA_OK);
  EXPECT_EQ(kept.content, answer.text);
  // Each answer begins anew, also with another constraint or none.
  EXPECT_THAT(Send(chat, kQuestion).text, MatchesRegex(kObject));
  const cria_generation_options regex = Constrained(CRIA_CONSTRAINT_REGEX, "(yes|no)!");
  ASSERT_EQ(cria_chat_set_options(chat.get(), &regex), CRIA_OK) << cria_error_message();
  EXPECT_THAT(Send(chat, kQuestion).text, AnyOf("yes!", "no!"));
  const cria_generation_options free = Greedy();
  ASSERT_EQ(cria_chat_set_options(chat.get(), &free), CRIA_OK);
  ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
  EXPECT_EQ(Send(chat, kQuestion).text, kAnswer);
}

TEST_F(ConstraintOfCTest, EveryKindHolds) {
  cria_generation_options options = Constrained(CRIA_CONSTRAINT_JSON_OBJECT, "");
  options.max_tokens = 25;
  const Answer object = Complete(model_, "llama", options);
  ASSERT_EQ(object.status, CRIA_OK) << cria_error_message();
  EXPECT_THAT(object.text, MatchesRegex("\\{(.|\n)*\\}"));
  options.constraint_kind = CRIA_CONSTRAINT_JSON;
  EXPECT_EQ(Complete(model_, "llama", options).status, CRIA_OK) << cria_error_message();
  EXPECT_THAT(
      Complete(model_, "llama",
               Constrained(CRIA_CONSTRAINT_GRAMMAR, "root ::= \"a\" digit \"b\"\ndigit ::= [0-9]"))
          .text,
      MatchesRegex("a[0-9]b"));
  EXPECT_THAT(Complete(model_, "llama", Constrained(CRIA_CONSTRAINT_REGEX, "[0-9]{3}")).text,
              MatchesRegex("[0-9][0-9][0-9]"));
}

TEST_F(ConstraintOfCTest, WhatMakesNoSenseIsRefused) {
  ExpectRefused(Constrained(6, ""), CRIA_ERROR_USAGE, "constraint_kind is 6");
  ExpectRefused(Constrained(-1, ""), CRIA_ERROR_USAGE, "constraint_kind is -1");
  for (const int32_t kind :
       {CRIA_CONSTRAINT_NONE, CRIA_CONSTRAINT_JSON, CRIA_CONSTRAINT_JSON_OBJECT}) {
    ExpectRefused(Constrained(kind, "a"), CRIA_ERROR_USAGE, "constraint has a text");
  }
  cria_generation_options options = Constrained(CRIA_CONSTRAINT_REGEX, "a");
  options.constraint = nullptr;
  ExpectRefused(options, CRIA_ERROR_USAGE, "constraint");
  options = Constrained(CRIA_CONSTRAINT_REGEX, "a");
  options.reserved = 1;
  ExpectRefused(options, CRIA_ERROR_UNSUPPORTED, "reserved");
  // What is wrong with a text, its reader says.
  EXPECT_NE(Complete(model_, "a", Constrained(CRIA_CONSTRAINT_REGEX, "(a")).status, CRIA_OK);
  EXPECT_NE(Complete(model_, "a", Constrained(CRIA_CONSTRAINT_GRAMMAR, "a ::= \"b\"")).status,
            CRIA_OK);
  ExpectFailure(
      Complete(model_, "a", Constrained(CRIA_CONSTRAINT_JSON_SCHEMA, R"({"uniqueItems": true})"))
          .status,
      CRIA_ERROR_UNSUPPORTED, "uniqueItems");
  // And the next call is none the worse for it.
  EXPECT_EQ(Complete(model_, "a", Constrained(CRIA_CONSTRAINT_REGEX, "abc")).text, "abc");
}

TEST_F(ConstraintOfCTest, AModelNeedsMemoryForThem) {
  const ModelPtr without = LoadModel();
  ExpectFailure(Complete(without, "llama", Constrained(CRIA_CONSTRAINT_JSON, "")).status,
                CRIA_ERROR_USAGE, "max_constraints");
}

TEST_F(ConstraintOfCTest, AsManyCallsRunAsWerePlanned) {
  cria_model_options model_options = WithConstraints();
  model_options.num_sequences = 2;
  const ModelPtr model = LoadModel(model_options);
  const cria_generation_options options = Constrained(CRIA_CONSTRAINT_REGEX, "[0-9]{5}");
  size_t num_pieces = 0;
  const Answer outer = Complete(model, "llama", options, [&](std::string_view) {
    if (num_pieces++ > 0) return true;
    std::thread([&] {
      ExpectFailure(Complete(model, "llama", options).status, CRIA_ERROR_OUT_OF_MEMORY,
                    "max_constraints");
      EXPECT_EQ(Complete(model, "llama").status, CRIA_OK) << cria_error_message();
    }).join();
    return true;
  });
  EXPECT_EQ(outer.status, CRIA_OK);
  EXPECT_EQ(Complete(model, "llama", options).text, outer.text);
}

TEST_F(ConstraintOfCTest, OlderProgramsHaveNone) {
  cria_generation_options options = Constrained(CRIA_CONSTRAINT_REGEX, "abc");
  options.struct_size = offsetof(cria_generation_options, constraint_kind);
  EXPECT_NE(Complete(model_, kQuestion, options).text, "abc");
  cria_model_options older = WithConstraints();
  older.struct_size = offsetof(cria_model_options, max_constraints);
  ExpectFailure(
      Complete(LoadModel(older), "llama", Constrained(CRIA_CONSTRAINT_REGEX, "abc")).status,
      CRIA_ERROR_USAGE, "max_constraints");
}

TEST_F(ConstraintOfCTest, ThePlanHasALineForThem) {
  const auto bytes_of_line = [](uint64_t max_constraints) {
    const cria_model_options options = WithConstraints(max_constraints);
    cria_plan* made = nullptr;
    EXPECT_EQ(cria_plan_create(&options, &made), CRIA_OK) << cria_error_message();
    const PlanPtr plan(made);
    for (size_t i = 0; i < cria_plan_num_parts(made); ++i) {
      uint64_t bytes = 0;
      if (cria_plan_get_part(made, i, &bytes, nullptr) == std::string_view("constraints")) {
        return bytes;
      }
    }
    return uint64_t{0};
  };
  EXPECT_EQ(bytes_of_line(0), 0u);
  const uint64_t one = bytes_of_line(1);
  const uint64_t two = bytes_of_line(2);
  EXPECT_GT(one, 0u);
  EXPECT_EQ(bytes_of_line(5) - two, 3 * (two - one));
}

}  // namespace
}  // namespace cria_test
