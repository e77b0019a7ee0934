// How an answer is steered and watched: stop strings, bias, tokens, progress, logits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

class GenerationTest : public testing::Test {
 protected:
  std::vector<int32_t> Tokenize(const char* text) {
    size_t count = 0;
    EXPECT_EQ(cria_tokenize(model_.get(), text, 0, 1, nullptr, 0, &count), CRIA_OK);
    std::vector<int32_t> tokens(count);
    EXPECT_EQ(cria_tokenize(model_.get(), text, 0, 1, tokens.data(), count, &count), CRIA_OK);
    return tokens;
  }

  Answer CompleteText(const std::string& prompt, const cria_generation_options& options) {
    return Generate([&](const cria_callbacks* callbacks, cria_result* result) {
      return cria_complete_text(model_.get(), prompt.data(), prompt.size(), &options, callbacks,
                                result);
    });
  }

  const ModelPtr model_ = LoadModel();
};

TEST_F(GenerationTest, AnAnswerEndsBeforeAStopString) {
  const ChatPtr chat = MakeChat(model_);
  ASSERT_EQ(Send(chat, kQuestion).text, kAnswer);
  // Whatever part of the answer it is, however the tokens divide it.
  const std::string answer = kAnswer;
  for (size_t begin = 1; begin + 6 < answer.size(); begin += 7) {
    const std::string stop = answer.substr(begin, 1 + begin % 6);
    const cria_text stops[] = {{"never said", CRIA_ZERO_TERMINATED}, {stop.data(), stop.size()}};
    cria_generation_options options = Greedy();
    options.stop_strings = stops;
    options.num_stop_strings = 2;
    ASSERT_EQ(cria_chat_set_options(chat.get(), &options), CRIA_OK) << cria_error_message();
    ASSERT_EQ(cria_chat_reset(chat.get()), CRIA_OK);
    const Answer stopped = Send(chat, kQuestion);
    EXPECT_EQ(stopped.text, answer.substr(0, answer.find(stop)));
    EXPECT_EQ(stopped.result.stop_reason, CRIA_STOP_STRING);
    cria_message kept = {};
    ASSERT_EQ(cria_chat_get_message(chat.get(), 1, &kept), CRIA_OK);
    EXPECT_EQ(std::string(kept.content, kept.content_bytes), stopped.text);
  }
}

TEST_F(GenerationTest, OptionsAreCopied) {
  std::string stop = "Cria";
  std::vector<cria_text> stops = {{stop.data(), stop.size()}};
  std::vector<cria_logit_bias> bias = {{Tokenize("Hello")[0], 0.5f}};
  cria_generation_options options = Greedy();
  options.stop_strings = stops.data();
  options.num_stop_strings = 1;
  options.logit_bias = bias.data();
  options.num_logit_bias = 1;
  const ChatPtr chat = MakeChat(model_, options);
  stop = "####";
  stops[0] = {nullptr, 100};
  bias[0] = {-1, kForbidden};
  EXPECT_EQ(Send(chat, kQuestion).text, "Hello! I am ");
}

TEST_F(GenerationTest, ABiasForbidsAndForcesTokens) {
  const cria_generation_options plain = Greedy();
  const std::string text = Complete(model_, "Hello! I am", plain).text;
  std::vector<cria_logit_bias> bias;
  // The tokens of the usual text, except the end.
  for (const int32_t token : Tokenize(text.c_str())) bias.push_back({token, kForbidden});
  cria_generation_options options = plain;
  options.max_tokens = 10;
  options.logit_bias = bias.data();
  options.num_logit_bias = bias.size();
  const Answer other = Complete(model_, "Hello! I am", options);
  EXPECT_EQ(other.status, CRIA_OK) << cria_error_message();
  EXPECT_NE(other.text, text.substr(0, other.text.size()));

  const int32_t llama = Tokenize(" llama").back();
  const cria_logit_bias forced = {llama, 1000.0f};
  options.logit_bias = &forced;
  options.num_logit_bias = 1;
  options.max_tokens = 3;
  const Answer said = Complete(model_, "Hello! I am", options);
  std::string thrice;
  for (int i = 0; i < 3; ++i) thrice += "llama";
  std::string letters = said.text;
  std::erase(letters, ' ');
  EXPECT_EQ(letters, thrice);

  cria_model_info info = CRIA_MODEL_INFO_INIT;
  ASSERT_EQ(cria_model_get_info(model_.get(), &info), CRIA_OK);
  std::vector<cria_logit_bias> all;
  for (uint32_t id = 0; id < info.vocab_size; ++id) {
    all.push_back({static_cast<int32_t>(id), kForbidden});
  }
  options.logit_bias = all.data();
  options.num_logit_bias = all.size();
  ExpectFailure(Complete(model_, "Hello! I am", options).status, CRIA_ERROR_USAGE, "logit_bias");
}

// What callbacks were told.
struct Told {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<double> log_probabilities;
  std::vector<std::pair<uint32_t, uint32_t>> progress;
  size_t stop_at_token = SIZE_MAX;
  size_t stop_at_progress = SIZE_MAX;

  static int TakeToken(const cria_token* token, void* data) {
    auto* told = static_cast<Told*>(data);
    EXPECT_EQ(token->struct_size, sizeof(cria_token));
    EXPECT_EQ(token->index, told->ids.size());
    EXPECT_EQ(token->text[token->text_bytes], '\0');
    told->text.append(token->text, token->text_bytes);
    told->ids.push_back(token->id);
    told->log_probabilities.push_back(token->log_probability);
    return told->ids.size() == told->stop_at_token;
  }
  static int TakeProgress(uint32_t done, uint32_t total, void* data) {
    auto* told = static_cast<Told*>(data);
    told->progress.emplace_back(done, total);
    return told->progress.size() == told->stop_at_progress;
  }
  cria_callbacks callbacks() {
    cria_callbacks made = CRIA_CALLBACKS_INIT;
    made.on_token = TakeToken;
    made.on_prompt = TakeProgress;
    made.data = this;
    return made;
  }
};

TEST_F(GenerationTest, EveryTokenIsTold) {
  const ChatPtr chat = MakeChat(model_);
  Told told;
  const cria_callbacks callbacks = told.callbacks();
  const cria_message question = {"user", kQuestion, 4, CRIA_ZERO_TERMINATED};
  cria_result result = CRIA_RESULT_INIT;
  ASSERT_EQ(cria_chat_answer(chat.get(), &question, &callbacks, &result), CRIA_OK)
      << cria_error_message();
  EXPECT_EQ(told.text, kAnswer);
  EXPECT_EQ(told.ids.size(), result.generated_tokens);
  for (const double log_probability : told.log_probabilities) {
    EXPECT_LE(log_probability, 0.0);
    // The demo model is rather sure of this answer.
    EXPECT_GT(log_probability, std::log(0.2));
  }
  std::vector<char> text(told.text.size() + 1);
  size_t bytes = 0;
  ASSERT_EQ(cria_detokenize(model_.get(), told.ids.data(), told.ids.size(), text.data(),
                            text.size(), &bytes),
            CRIA_OK);
  EXPECT_STREQ(text.data(), kAnswer);
}

TEST_F(GenerationTest, LogProbabilitiesAreThoseOfTheLogits) {
  const std::string prompt = "Hello! I am";
  std::vector<float> logits(1536);
  size_t count = 0;
  ASSERT_EQ(cria_get_logits(model_.get(), prompt.data(), prompt.size(), 0, nullptr, logits.data(),
                            logits.size(), &count),
            CRIA_OK)
      << cria_error_message();
  ASSERT_EQ(count, logits.size());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit});

  // Greedy, and with another token forced; both are probabilities of the model itself.
  const int32_t likely = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
  const int32_t forced_token = likely == 300 ? 301 : 300;
  for (const int32_t token : {likely, forced_token}) {
    Told told;
    const cria_callbacks callbacks = told.callbacks();
    cria_generation_options options = Greedy();
    const cria_logit_bias bias = {token, 500.0f};
    options.max_tokens = 1;
    options.repeat_penalty = 1.5f;
    options.logit_bias = &bias;
    options.num_logit_bias = 1;
    ASSERT_EQ(cria_complete_text(model_.get(), prompt.data(), prompt.size(), &options, &callbacks,
                                 nullptr),
              CRIA_OK)
        << cria_error_message();
    ASSERT_EQ(told.ids, std::vector<int32_t>{token});
    EXPECT_NEAR(told.log_probabilities[0], logits[static_cast<size_t>(token)] - std::log(sum),
                1e-3);
  }
}

TEST_F(GenerationTest, ATokensCallbackStopsTheAnswerAfterIt) {
  const ChatPtr chat = MakeChat(model_);
  Told told;
  told.stop_at_token = 4;
  const cria_callbacks callbacks = told.callbacks();
  const cria_message question = {"user", kQuestion, 4, CRIA_ZERO_TERMINATED};
  cria_result result = CRIA_RESULT_INIT;
  ASSERT_EQ(cria_chat_answer(chat.get(), &question, &callbacks, &result), CRIA_OK);
  EXPECT_EQ(result.stop_reason, CRIA_STOP_CANCELLED);
  EXPECT_EQ(result.generated_tokens, 4u);
  EXPECT_EQ(told.ids.size(), 4u);
  cria_message kept = {};
  ASSERT_EQ(cria_chat_get_message(chat.get(), 1, &kept), CRIA_OK);
  EXPECT_EQ(std::string(kept.content, kept.content_bytes), told.text);
  EXPECT_EQ(Send(chat, "Where do you run?").result.stop_reason, CRIA_STOP_END);
}

TEST_F(GenerationTest, ProgressOfAPromptIsTold) {
  cria_model_options small = DemoOptions();
  small.chunk_tokens = 8;
  const ModelPtr model = LoadModel(small);
  const std::string prompt = "a baby llama a baby llama a baby llama a baby llama a baby llama";
  cria_generation_options options = Greedy();
  options.max_tokens = 1;
  Told told;
  const auto complete = [&] {
    const cria_callbacks callbacks = told.callbacks();
    cria_result result = CRIA_RESULT_INIT;
    const cria_status status = cria_complete_text(model.get(), prompt.data(), prompt.size(),
                                                  &options, &callbacks, &result);
    EXPECT_EQ(result.prompt_tokens + result.reused_tokens,
              status == CRIA_OK ? told.progress.back().second : 0u);
    return status;
  };
  ASSERT_EQ(complete(), CRIA_OK) << cria_error_message();
  const auto progress = told.progress;
  ASSERT_GT(progress.size(), 2u);
  const uint32_t total = progress[0].second;
  for (size_t i = 0; i < progress.size(); ++i) {
    EXPECT_EQ(progress[i].first, std::min(static_cast<uint32_t>(8 * i), total));
    EXPECT_EQ(progress[i].second, total);
  }
  EXPECT_EQ(progress.back().first, total);
  // Nothing that the context holds is read again.
  told = {};
  ASSERT_EQ(complete(), CRIA_OK);
  EXPECT_EQ(told.progress[0].first, total - 1);
  // It stops the call.
  ASSERT_EQ(cria_complete(model.get(), "Hello", &options, nullptr, nullptr, nullptr), CRIA_OK);
  told = {};
  told.stop_at_progress = 2;
  ExpectFailure(complete(), CRIA_ERROR_CANCELLED, "prompt");
  EXPECT_EQ(told.progress.size(), 2u);
  EXPECT_TRUE(told.ids.empty());
}

TEST_F(GenerationTest, LogitsOfAChatFollowItsMessages) {
  const ChatPtr chat = MakeChat(model_);
  std::vector<float> logits(1536);
  size_t count = 0;
  const auto next = [&] {
    EXPECT_EQ(cria_chat_get_logits(chat.get(), nullptr, logits.data(), logits.size(), &count),
              CRIA_OK)
        << cria_error_message();
    return static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
  };
  ExpectFailure(cria_chat_get_logits(chat.get(), nullptr, logits.data(), logits.size(), &count),
                CRIA_ERROR_USAGE, "no message");
  const cria_message question = {"user", kQuestion, 4, CRIA_ZERO_TERMINATED};
  cria_chat* made = nullptr;
  ASSERT_EQ(cria_chat_create_from_messages(model_.get(), &question, 1, nullptr, &made), CRIA_OK);
  const ChatPtr asked(made);
  ASSERT_EQ(cria_chat_get_logits(asked.get(), nullptr, logits.data(), logits.size(), &count),
            CRIA_OK);
  // An answer begins with them.
  const auto likely = std::ranges::max_element(logits) - logits.begin();
  EXPECT_EQ(static_cast<int32_t>(likely), Tokenize(kAnswer)[0]);
  Send(chat, kQuestion);
  next();
  EXPECT_EQ(count, logits.size());
  // They are the logits of the text that the template makes.
  const std::string text = std::string("<|im_start|>user\n") + kQuestion +
                           "<|im_end|>\n<|im_start|>assistant\n" + kAnswer + "<|im_end|>\n";
  std::vector<float> of_text(1536);
  ASSERT_EQ(cria_get_logits(model_.get(), text.data(), text.size(), 1, nullptr, of_text.data(),
                            of_text.size(), &count),
            CRIA_OK);
  EXPECT_LT(std::ranges::max(logits), 100.0f);
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(of_text[i], logits[i], 1e-2f);
}

TEST_F(GenerationTest, LogitsThatCannotBeReadAreRefused) {
  size_t count = 0;
  const ChatPtr chat = MakeChat(model_);
  Send(chat, kQuestion);
  std::vector<float> logits(1536, 7.0f);
  // Counting reads nothing.
  EXPECT_EQ(cria_get_logits(model_.get(), "a", 1, 0, nullptr, nullptr, 0, &count), CRIA_OK);
  EXPECT_EQ(count, 1536u);
  EXPECT_EQ(cria_chat_get_logits(chat.get(), nullptr, nullptr, 0, &count), CRIA_OK);
  EXPECT_EQ(count, 1536u);
  ExpectFailure(cria_get_logits(model_.get(), "a", 1, 0, nullptr, logits.data(), 1535, &count),
                CRIA_ERROR_OUT_OF_RANGE, "1536");
  ExpectFailure(cria_chat_get_logits(chat.get(), nullptr, logits.data(), 1535, &count),
                CRIA_ERROR_OUT_OF_RANGE, "1536");
  EXPECT_EQ(logits[0], 7.0f);
  ExpectFailure(cria_get_logits(model_.get(), nullptr, 1, 0, nullptr, logits.data(), 1536, &count),
                CRIA_ERROR_USAGE, "prompt is NULL");
  const std::string much(2000, '?');
  ExpectFailure(cria_get_logits(model_.get(), much.data(), much.size(), 0, nullptr, logits.data(),
                                1536, &count),
                CRIA_ERROR_OUT_OF_RANGE, "context");
  ExpectFailure(cria_get_logits(nullptr, "a", 1, 0, nullptr, logits.data(), 1536, &count),
                CRIA_ERROR_USAGE, "model is NULL");
  ExpectFailure(cria_get_logits(model_.get(), "a", 1, 0, nullptr, logits.data(), 1536, nullptr),
                CRIA_ERROR_USAGE, "num_logits is NULL");
  ExpectFailure(cria_chat_get_logits(nullptr, nullptr, logits.data(), 1536, &count),
                CRIA_ERROR_USAGE, "chat is NULL");
  Told told;
  told.stop_at_progress = 1;
  const cria_callbacks callbacks = told.callbacks();
  ExpectFailure(cria_get_logits(model_.get(), "a b", 3, 0, &callbacks, logits.data(), 1536, &count),
                CRIA_ERROR_CANCELLED, "prompt");
}

TEST_F(GenerationTest, TextsHaveLengths) {
  const Answer whole = CompleteText("Hello! I am", Greedy());
  EXPECT_EQ(whole.text, Complete(model_, "Hello! I am").text);
  // Behind the length, nothing is read.
  std::string longer = "Hello! I am not";
  longer.resize(11);
  EXPECT_EQ(CompleteText(longer, Greedy()).text, whole.text);
  EXPECT_EQ(CompleteText(std::string("a\0b", 3), Greedy()).status, CRIA_OK);
  size_t with_zero = 0;
  size_t without = 0;
  ASSERT_EQ(cria_tokenize_text(model_.get(), "a\0b", 3, 0, 0, nullptr, 0, &with_zero), CRIA_OK);
  ASSERT_EQ(
      cria_tokenize_text(model_.get(), "a\0b", CRIA_ZERO_TERMINATED, 0, 0, nullptr, 0, &without),
      CRIA_OK);
  EXPECT_GT(with_zero, without);
  ExpectFailure(cria_tokenize_text(model_.get(), nullptr, 3, 0, 0, nullptr, 0, &without),
                CRIA_ERROR_USAGE, "text is NULL");
  ExpectFailure(cria_complete_text(model_.get(), "a", SIZE_MAX / 2 + 1, nullptr, nullptr, nullptr),
                CRIA_ERROR_USAGE, "prompt has");
  ExpectFailure(cria_complete_text(nullptr, "a", 1, nullptr, nullptr, nullptr), CRIA_ERROR_USAGE,
                "model is NULL");
}

TEST_F(GenerationTest, OptionsThatCannotBeAreRefused) {
  const auto expect_refused = [&](const cria_generation_options& options, std::string_view words) {
    cria_chat* chat = nullptr;
    ExpectFailure(cria_chat_create(model_.get(), nullptr, &options, &chat), CRIA_ERROR_USAGE,
                  words);
    ExpectFailure(Complete(model_, "a", options).status, CRIA_ERROR_USAGE, words);
  };
  cria_generation_options options = Greedy();
  options.num_stop_strings = 1;
  expect_refused(options, "stop_strings is NULL");
  cria_text stop = {nullptr, 3};
  options.stop_strings = &stop;
  expect_refused(options, "stop string is NULL");
  stop = {"", CRIA_ZERO_TERMINATED};
  expect_refused(options, "stop string 1 is empty");
  stop = {"x", 0};
  expect_refused(options, "stop string 1 is empty");
  stop = {"\xff", 1};
  expect_refused(options, "not valid UTF-8");
  stop = {"a", SIZE_MAX - 1};
  expect_refused(options, "bytes");
  options.num_stop_strings = SIZE_MAX;
  expect_refused(options, "stop_strings has");

  options = Greedy();
  options.num_logit_bias = 1;
  expect_refused(options, "logit_bias is NULL");
  for (const int32_t id : {-1, 1536, INT32_MAX, INT32_MIN}) {
    const cria_logit_bias bias = {id, 1.0f};
    options.logit_bias = &bias;
    expect_refused(options, "outside the vocabulary of 1536");
  }
  for (const float addend :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 2e6f}) {
    const cria_logit_bias bias = {3, addend};
    options.logit_bias = &bias;
    expect_refused(options, "logit_bias is");
  }
  const cria_logit_bias bias = {3, 1.0f};
  options.logit_bias = &bias;
  options.num_logit_bias = 2'000'000;
  expect_refused(options, "logit_bias has");

  const ChatPtr chat = MakeChat(model_);
  for (const size_t size : {size_t{0}, sizeof(cria_callbacks) - 1, size_t{5000}}) {
    cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
    callbacks.struct_size = size;
    ExpectFailure(cria_chat_answer(chat.get(), nullptr, &callbacks, nullptr), CRIA_ERROR_USAGE,
                  "struct_size of cria_callbacks");
  }
}

// A program that was compiled before the options had stop strings: what follows is not its own.
TEST_F(GenerationTest, OptionsOfAnOlderProgramHaveNoStopStrings) {
  cria_generation_options options = Greedy();
  options.struct_size = offsetof(cria_generation_options, stop_strings);
  options.stop_strings = reinterpret_cast<const cria_text*>(1);
  options.num_stop_strings = 17;
  options.logit_bias = reinterpret_cast<const cria_logit_bias*>(1);
  options.num_logit_bias = 17;
  const ChatPtr chat = MakeChat(model_, options);
  EXPECT_EQ(Send(chat, kQuestion).text, kAnswer);
  EXPECT_EQ(Complete(model_, "Hello! I am", options).text,
            Complete(model_, "Hello! I am", Greedy()).text);
}

// A program from before these options were added passes a shorter struct.
TEST_F(GenerationTest, OptionsOfAnOlderProgramHaveNoPenalties) {
  cria_generation_options options = Greedy();
  options.struct_size = offsetof(cria_generation_options, presence_penalty);
  options.presence_penalty = std::numeric_limits<float>::quiet_NaN();
  options.dry_multiplier = -1.0f;
  EXPECT_EQ(Complete(model_, "Hello! I am", options).text,
            Complete(model_, "Hello! I am", Greedy()).text);
}

TEST_F(GenerationTest, EachStepOfTheSamplerChangesTheText) {
  const char* const prompt = "Hello! I am Cria. Hello! I am Cria. Hello! I am";
  const auto complete = [&](const auto& set) {
    cria_generation_options options = Greedy();
    options.max_tokens = 12;
    set(options);
    const Answer answer = Complete(model_, prompt, options);
    EXPECT_EQ(answer.status, CRIA_OK) << cria_error_message();
    return answer.text;
  };
  const std::string plain = complete([](auto&) {});
  EXPECT_NE(complete([](auto& options) { options.presence_penalty = 20.0f; }), plain);
  EXPECT_NE(complete([](auto& options) { options.frequency_penalty = 20.0f; }), plain);
  EXPECT_NE(complete([](auto& options) { options.dry_multiplier = 20.0f; }), plain);
  // No text that was there before is so long.
  EXPECT_EQ(complete([](auto& options) {
              options.dry_multiplier = 20.0f;
              options.dry_allowed_length = 100;
            }),
            plain);
  EXPECT_NE(complete([](auto& options) {
              options.xtc_probability = 1.0f;
              options.xtc_threshold = 1e-6f;
            }),
            plain);
  EXPECT_EQ(complete([](auto& options) { options.typical_p = 1.0f; }), plain);
  // Every repetition has this breaker, so that none is long enough.
  const cria_text breaker = {"a", 1};
  EXPECT_NE(complete([&](auto& options) {
              options.dry_multiplier = 20.0f;
              options.dry_sequence_breakers = &breaker;
              options.num_dry_sequence_breakers = 1;
            }),
            complete([](auto& options) {
              options.dry_multiplier = 20.0f;
              options.dry_no_sequence_breakers = 1;
            }));
}

}  // namespace
}  // namespace cria_test
