#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/hugging_face/hf_config_fixture.h"

namespace cria {
namespace {

using nlohmann::json;

class HfWindowTest : public HfConfigFixture {};

TEST_F(HfWindowTest, LlamaHasNoWindow) {
  for (const json& fields :
       std::vector<json>{{{"sliding_window", 12}},
                         {{"sliding_window", 12}, {"use_sliding_window", true}},
                         {{"layer_types", {"sliding_attention"}}}}) {
    const auto config = ReadAs("LlamaForCausalLM", fields);
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_EQ(config->layer_kinds[0].sliding_window, 0u) << fields;
  }
}

// TinyConfig has two layers and a context of 64.
TEST_F(HfWindowTest, MistralHasAWindowUnlessItIsNull) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention"};
  struct {
    json fields;
    uint32_t window;
  } const cases[] = {
      {{{"sliding_window", nullptr}}, 0},
      {{{"sliding_window", 0}}, 0},
      {{{"sliding_window", 12}}, 12},
      {{{"sliding_window", 63}}, 63},
      // The window is as long as the context or longer.
      {{{"sliding_window", 64}}, 0},
      {{{"sliding_window", 131072}}, 0},
      // The default is 4096.
      {{{"max_position_embeddings", 4096}}, 0},
      {{{"max_position_embeddings", 4097}}, 4096},
      {{{"sliding_window", 12}, {"use_sliding_window", false}}, 12},
      {{{"sliding_window", 12}, {"max_window_layers", 1}}, 12},
      {{{"sliding_window", 12}, {"layer_types", sliding}}, 12},
      {{{"sliding_window", nullptr}, {"layer_types", full}}, 0},
      {{{"sliding_window", 12}, {"layer_types", full}}, 0},
      {{{"sliding_window", 12}, {"layer_types", nullptr}}, 12},
      // The window is compared with the longest context.
      {{{"sliding_window", 64}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}, 64},
  };
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    for (const auto& [fields, window] : cases) {
      const auto read = ReadAs(architecture, fields);
      ASSERT_TRUE(read) << fields << ": " << read.error().message();
      EXPECT_EQ(read->layer_kinds[0].sliding_window, window) << fields;
      EXPECT_EQ(read->layer_kinds.size(), 1u) << fields;
    }
  }
}

TEST_F(HfWindowTest, QwensHaveAWindowWhereItIsSwitchedOn) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json full = {"full_attention", "full_attention"};
  const json on = {{"use_sliding_window", true}, {"sliding_window", 12}};
  struct {
    json fields;
    uint32_t window;
  } const cases[] = {
      {{}, 0},
      {{{"sliding_window", 12}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", nullptr}}, 0},
      {{{"sliding_window", 12}, {"use_sliding_window", false}, {"max_window_layers", 1}}, 0},
      {{{"sliding_window", nullptr}, {"use_sliding_window", true}}, 0},
      // By default, the first 28 layers have no window.
      {on, 0},
      {{{"max_window_layers", 0}}, 12},
      {{{"max_window_layers", 2}}, 0},
      {{{"layer_types", sliding}}, 12},
      {{{"layer_types", sliding}, {"max_window_layers", 1}}, 12},
      {{{"layer_types", full}}, 0},
  };
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    for (const auto& [fields, window] : cases) {
      json all = fields.contains("sliding_window") ? json::object() : on;
      if (fields.empty()) all = json::object();
      all.update(fields.is_null() ? json::object() : fields);
      const auto read = ReadAs(architecture, all);
      ASSERT_TRUE(read) << all << ": " << read.error().message();
      EXPECT_EQ(read->layer_kinds[0].sliding_window, window) << all;
      EXPECT_EQ(read->layer_kinds.size(), 1u) << all;
    }
  }
}

TEST_F(HfWindowTest, SomeLayersMayHaveAWindow) {
  const LayerKind kFull = {.rope_theta = 10000.0f};
  const LayerKind kWindowed = {.sliding_window = 12, .rope_theta = 10000.0f};
  const auto expect = [&](const char* architecture, json fields,
                          const std::vector<LayerKind>& kinds,
                          const std::vector<uint8_t>& kind_of_layer) {
    fields["num_hidden_layers"] = 4;
    fields["sliding_window"] = 12;
    const auto read = ReadAs(architecture, fields);
    ASSERT_TRUE(read) << fields << ": " << read.error().message();
    EXPECT_EQ(read->layer_kinds, kinds) << fields;
    EXPECT_EQ(read->kind_of_layer, kind_of_layer) << fields;
  };
  const json alternate = {"sliding_attention", "full_attention", "sliding_attention",
                          "full_attention"};
  const json full_first = {"full_attention", "full_attention", "full_attention",
                           "sliding_attention"};
  for (const char* architecture : {"MistralForCausalLM", "MinistralForCausalLM"}) {
    expect(architecture, {{"layer_types", alternate}}, {kWindowed, kFull}, {0, 1, 0, 1});
    expect(architecture, {{"layer_types", full_first}}, {kFull, kWindowed}, {0, 0, 0, 1});
  }
  for (const char* architecture : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const json on = {{"use_sliding_window", true}};
    expect(architecture, With(on, {{"layer_types", alternate}}), {kWindowed, kFull}, {0, 1, 0, 1});
    // Layers from max_window_layers on have the window, unless layer_types is given.
    expect(architecture, With(on, {{"max_window_layers", 1}}), {kFull, kWindowed}, {0, 1, 1, 1});
    expect(architecture, With(on, {{"max_window_layers", 3}}), {kFull, kWindowed}, {0, 0, 0, 1});
    expect(architecture, With(on, {{"max_window_layers", 4}}), {kFull}, {});
    expect(architecture, With(on, {{"max_window_layers", 1}, {"layer_types", full_first}}),
           {kFull, kWindowed}, {0, 0, 0, 1});
  }
  // A window that is as long as the longest context makes no difference.
  expect("MistralForCausalLM", {{"layer_types", alternate}, {"max_position_embeddings", 12}},
         {kFull}, {});
}

TEST_F(HfWindowTest, RefusesWindowsThatContradict) {
  const json sliding = {"sliding_attention", "sliding_attention"};
  const json on = {{"use_sliding_window", true}, {"sliding_window", 12}};
  struct {
    json fields;
    std::string_view reason;
  } const cases[] = {
      {{{"sliding_window", -1}}, "sliding_window is -1"},
      {{{"sliding_window", "12"}}, "sliding_window is \"12\""},
      {{{"use_sliding_window", 1}}, "use_sliding_window is 1"},
      {{{"max_window_layers", -1}}, "max_window_layers is -1"},
      {{{"layer_types", {"full_attention", "chunked_attention"}}},
       "layer_types has \"chunked_attention\"; this version supports full_attention and "
       "sliding_attention"},
      {{{"layer_types", {"full_attention", 1}}}, "layer_types has 1; this version"},
      {{{"layer_types", {"full_attention", nullptr}}}, "layer_types has null"},
      {{{"layer_types", {"full_attention"}}}, "layer_types has 1 entries"},
      {{{"layer_types", json::array()}}, "layer_types has 0 entries"},
      {{{"layer_types", "full_attention"}}, "layer_types is \"full_attention\""},
      {{{"sliding_window", nullptr}, {"layer_types", sliding}}, "sliding_window gives no window"},
      {{{"use_sliding_window", false}, {"layer_types", sliding}}, "sliding_window gives no window"},
  };
  for (const auto& [fields, reason] : cases) {
    json all = on;
    all.update(fields);
    ExpectRefusedAs("Qwen2ForCausalLM", all, reason);
  }
  for (const json& window : {json(), json(0)}) {
    ExpectRefusedAs(
        "MistralForCausalLM",
        {{"sliding_window", window}, {"layer_types", {"sliding_attention", "full_attention"}}},
        "layer_types has sliding_attention, but sliding_window gives no window");
  }
}

// They are refused before memory is taken for each.
TEST_F(HfWindowTest, RefusesFarTooManyLayers) {
  for (const char* architecture : {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM"}) {
    ExpectRefusedAs(architecture,
                    {{"num_hidden_layers", ~0u},
                     {"use_sliding_window", true},
                     {"sliding_window", 12},
                     {"max_window_layers", 1u << 31}},
                    "num_hidden_layers is 4294967295, outside 1 to 1024");
  }
}

}  // namespace
}  // namespace cria
