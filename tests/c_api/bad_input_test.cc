// Arguments, structs and files that cannot be: each is refused with a sentence that names it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "c_api/c_api_fixture.h"
#include "c_api/fixture_models.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria_test {
namespace {

class BadInputTest : public testing::Test {
 protected:
  void ExpectLoadFails(const cria_model_options& options, cria_status status,
                       std::string_view words) {
    cria_model* model = reinterpret_cast<cria_model*>(1);
    ExpectFailure(cria_model_load(&options, &model), status, words);
    EXPECT_EQ(model, nullptr);
    // Most are refused before anything is loaded, and all of these by a plan.
    cria_plan* plan = reinterpret_cast<cria_plan*>(1);
    ExpectFailure(cria_plan_create(&options, &plan), status, words);
    EXPECT_EQ(plan, nullptr);
  }

  cria::support::TemporaryDirectory directory_;
};

TEST_F(BadInputTest, NullHandlesAndPlaces) {
  cria_model_options options = DemoOptions();
  cria_model* no_model = nullptr;
  cria_plan* no_plan = nullptr;
  cria_chat* no_chat = nullptr;
  cria_model_info info = CRIA_MODEL_INFO_INIT;
  cria_plan_totals totals = CRIA_PLAN_TOTALS_INIT;
  size_t count = 5;
  ExpectFailure(cria_model_load(nullptr, &no_model), CRIA_ERROR_USAGE, "options is NULL");
  ExpectFailure(cria_model_load(&options, nullptr), CRIA_ERROR_USAGE, "model is NULL");
  ExpectFailure(cria_plan_create(nullptr, &no_plan), CRIA_ERROR_USAGE, "options is NULL");
  ExpectFailure(cria_plan_create(&options, nullptr), CRIA_ERROR_USAGE, "plan is NULL");
  ExpectFailure(cria_model_get_info(nullptr, &info), CRIA_ERROR_USAGE, "model is NULL");
  ExpectFailure(cria_plan_get_info(nullptr, &info), CRIA_ERROR_USAGE, "plan is NULL");
  ExpectFailure(cria_plan_get_totals(nullptr, &totals), CRIA_ERROR_USAGE, "plan is NULL");
  ExpectFailure(cria_plan_check(nullptr), CRIA_ERROR_USAGE, "plan is NULL");
  ExpectFailure(cria_chat_create(nullptr, "", nullptr, &no_chat), CRIA_ERROR_USAGE,
                "model is NULL");
  ExpectFailure(cria_chat_send(nullptr, "", nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                "chat is NULL");
  ExpectFailure(cria_chat_reset(nullptr), CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_chat_set_options(nullptr, nullptr), CRIA_ERROR_USAGE, "chat is NULL");
  ExpectFailure(cria_complete(nullptr, "", nullptr, nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                "model is NULL");
  ExpectFailure(cria_tokenize(nullptr, "", 0, 0, nullptr, 0, &count), CRIA_ERROR_USAGE,
                "model is NULL");
  EXPECT_EQ(count, 0u);
  ExpectFailure(cria_detokenize(nullptr, nullptr, 0, nullptr, 0, &count), CRIA_ERROR_USAGE,
                "model is NULL");
  EXPECT_EQ(cria_plan_num_parts(nullptr), 0u);
  EXPECT_EQ(cria_plan_get_part(nullptr, 0, nullptr, nullptr), nullptr);
  EXPECT_EQ(cria_chat_context_used(nullptr), 0u);
  EXPECT_EQ(cria_chat_has_forgotten(nullptr), 0);
  cria_model_cancel(nullptr);
  cria_model_free(nullptr);
  cria_chat_free(nullptr);
  cria_plan_free(nullptr);
}

TEST_F(BadInputTest, NullArgumentsOfAModel) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  size_t count = 0;
  ExpectFailure(cria_chat_create(model.get(), nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                "chat is NULL");
  ExpectFailure(cria_chat_send(chat.get(), nullptr, nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                "message is NULL");
  ExpectFailure(cria_complete(model.get(), nullptr, nullptr, nullptr, nullptr, nullptr),
                CRIA_ERROR_USAGE, "prompt is NULL");
  ExpectFailure(cria_model_get_info(model.get(), nullptr), CRIA_ERROR_USAGE, "info is NULL");
  ExpectFailure(cria_tokenize(model.get(), nullptr, 0, 0, nullptr, 0, &count), CRIA_ERROR_USAGE,
                "text is NULL");
  ExpectFailure(cria_tokenize(model.get(), "", 0, 0, nullptr, 0, nullptr), CRIA_ERROR_USAGE,
                "num_tokens is NULL");
  ExpectFailure(cria_detokenize(model.get(), nullptr, 3, nullptr, 0, &count), CRIA_ERROR_USAGE,
                "tokens is NULL");
  ExpectFailure(cria_detokenize(model.get(), nullptr, 0, nullptr, 0, nullptr), CRIA_ERROR_USAGE,
                "text_bytes is NULL");
  // These may be NULL.
  cria_generation_options options = Greedy();
  options.max_tokens = 2;
  EXPECT_EQ(cria_complete(model.get(), "Hello", &options, nullptr, nullptr, nullptr), CRIA_OK);
  EXPECT_EQ(cria_chat_send(chat.get(), "Hello", nullptr, nullptr, nullptr), CRIA_OK);
}

TEST_F(BadInputTest, SizesOfStructs) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model);
  for (const size_t size : {size_t{0}, size_t{8}, SIZE_MAX / 4, SIZE_MAX}) {
    cria_model_options options = DemoOptions();
    options.struct_size = size;
    ExpectLoadFails(options, CRIA_ERROR_USAGE, "struct_size of cria_model_options");
    cria_generation_options generation = Greedy();
    generation.struct_size = size;
    cria_chat* made = nullptr;
    ExpectFailure(cria_chat_create(model.get(), nullptr, &generation, &made), CRIA_ERROR_USAGE,
                  "struct_size of cria_generation_options");
    ExpectFailure(cria_complete(model.get(), "a", &generation, nullptr, nullptr, nullptr),
                  CRIA_ERROR_USAGE, "struct_size of cria_generation_options");
    cria_result result = CRIA_RESULT_INIT;
    result.struct_size = size;
    ExpectFailure(cria_chat_send(chat.get(), "a", nullptr, nullptr, &result), CRIA_ERROR_USAGE,
                  "struct_size of cria_result");
    ExpectFailure(cria_complete(model.get(), "a", nullptr, nullptr, nullptr, &result),
                  CRIA_ERROR_USAGE, "struct_size of cria_result");
    cria_model_info info = CRIA_MODEL_INFO_INIT;
    info.struct_size = size;
    ExpectFailure(cria_model_get_info(model.get(), &info), CRIA_ERROR_USAGE,
                  "struct_size of cria_model_info");
  }
}

// What a program with a newer header would pass.
TEST_F(BadInputTest, OptionsOfANewerVersionAreTakenWhereTheyAreZero) {
  struct {
    cria_model_options known = DemoOptions();
    uint64_t later = 0;
  } newer;
  newer.known.struct_size = sizeof newer;
  EXPECT_NE(LoadModel(newer.known), nullptr);
  newer.later = 1;
  ExpectLoadFails(newer.known, CRIA_ERROR_UNSUPPORTED, "newer");
}

TEST_F(BadInputTest, PathsWithoutAModel) {
  cria_model_options options = DemoOptions();
  options.path = nullptr;
  ExpectLoadFails(options, CRIA_ERROR_USAGE, "path");
  options.path = "";
  ExpectLoadFails(options, CRIA_ERROR_NOT_FOUND, "open");
  const std::string missing = directory_ / "missing.cria";
  options.path = missing.c_str();
  ExpectLoadFails(options, CRIA_ERROR_NOT_FOUND, "missing.cria");
  options.path = directory_.path().c_str();
  ExpectLoadFails(options, CRIA_ERROR_IO, "regular file");
  options = DemoOptions();
  options.offset_bytes = 4;
  ExpectLoadFails(options, CRIA_ERROR_USAGE, "offset_bytes");
}

TEST_F(BadInputTest, FilesThatAreNoModel) {
  const std::string path = directory_ / "bad.cria";
  cria_model_options options = DemoOptions();
  options.path = path.c_str();
  const std::string model = cria::support::ReadFile(kDemoModel);
  for (const size_t bytes :
       {size_t{0}, size_t{10}, size_t{100}, model.size() / 2, model.size() - 1}) {
    cria::support::WriteFile(path, model.substr(0, bytes));
    ExpectLoadFails(options, CRIA_ERROR_INVALID_FILE, "bad.cria");
  }
  cria::support::WriteFile(path, std::string(100'000, 'x'));
  ExpectLoadFails(options, CRIA_ERROR_INVALID_FILE, "not a Cria model file");
}

TEST_F(BadInputTest, OptionsOutsideTheirRanges) {
  const auto expect = [&](auto set, std::string_view words) {
    cria_model_options options = DemoOptions();
    set(options);
    ExpectLoadFails(options, CRIA_ERROR_USAGE, words);
  };
  expect([](auto& options) { options.kv_type = 4; }, "kv_type");
  expect([](auto& options) { options.kv_type = -1; }, "kv_type");
  expect([](auto& options) { options.packing = 2; }, "packing");
  expect([](auto& options) { options.context_tokens = 513; }, "512");
  expect([](auto& options) { options.context_tokens = UINT32_MAX; }, "512");

  cria_model_options options = DemoOptions();
  options.num_threads = UINT32_MAX;
  cria_model* model = nullptr;
  ExpectFailure(cria_model_load(&options, &model), CRIA_ERROR_USAGE, "threads");
}

TEST_F(BadInputTest, SamplingOutsideItsRanges) {
  const ModelPtr model = LoadModel();
  const auto expect = [&](auto set, std::string_view words) {
    cria_generation_options options = Greedy();
    set(options);
    cria_chat* chat = reinterpret_cast<cria_chat*>(1);
    ExpectFailure(cria_chat_create(model.get(), nullptr, &options, &chat), CRIA_ERROR_USAGE, words);
    EXPECT_EQ(chat, nullptr);
    ExpectFailure(Complete(model, "a", options).status, CRIA_ERROR_USAGE, words);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect([](auto& options) { options.temperature = -1.0f; }, "temp");
  expect([&](auto& options) { options.temperature = nan; }, "temp");
  expect([](auto& options) { options.top_p = 1.5f; }, "top");
  expect([&](auto& options) { options.min_p = nan; }, "min");
  expect([](auto& options) { options.repeat_penalty = 0.0f; }, "repeat");
  expect([&](auto& options) { options.presence_penalty = nan; }, "presence_penalty");
  expect([](auto& options) { options.frequency_penalty = 2000.0f; }, "frequency_penalty");
  expect([](auto& options) { options.typical_p = 1.5f; }, "typical_p");
  expect([](auto& options) { options.xtc_probability = -1.0f; }, "xtc_probability");
  expect([](auto& options) { options.xtc_threshold = 2.0f; }, "xtc_threshold");
  expect([](auto& options) { options.dry_multiplier = -1.0f; }, "dry_multiplier");
  expect([](auto& options) { options.dry_base = 0.5f; }, "dry_base");
  expect([](auto& options) { options.num_dry_sequence_breakers = 1; }, "dry_sequence_breakers");
  const cria_text text = {"a", 1};
  expect(
      [&](auto& options) {
        options.dry_sequence_breakers = &text;
        options.num_dry_sequence_breakers = 1;
        options.dry_no_sequence_breakers = 1;
      },
      "dry_no_sequence_breakers");
  const cria_text empty = {"", 0};
  expect(
      [&](auto& options) {
        options.dry_multiplier = 1.0f;
        options.dry_sequence_breakers = &empty;
        options.num_dry_sequence_breakers = 1;
      },
      "dry_sequence_breakers");
  expect([](auto& options) { options.when_full = 2; }, "when_full");
}

TEST_F(BadInputTest, TextsThatAreNotUtf8GiveTextsThatAre) {
  const ModelPtr model = LoadModel();
  const ChatPtr chat = MakeChat(model, Greedy(), "\xff\xfe system");
  for (const char* text : {"\xff", "\xc3", "a\x80\x80z", "\xf4\x90\x80\x80", ""}) {
    const Answer answer = Send(chat, text);
    EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
    size_t count = 0;
    EXPECT_EQ(cria_tokenize(model.get(), text, 1, 1, nullptr, 0, &count), CRIA_OK);
  }
}

}  // namespace
}  // namespace cria_test
