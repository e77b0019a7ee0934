#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/loaded_model.h"
#include "reference/reference_model.h"
#include "support/tiny_checkpoint.h"

namespace cria {

// Runs a test with each kind of tiny checkpoint.
class DecoderOfEveryKind : public testing::TestWithParam<support::NamedSpec> {
 protected:
  void SetUp() override {
    model_ = support::MakeModel(GetParam().make());
    ids_ = SomeIds(48, model_.config.vocab_size);
  }

  // One conversion for all tests: it takes longer than most of them.
  static std::shared_ptr<const ConvertedModel> Converted(Scheme weights) {
    static std::map<std::pair<std::string, Scheme>, std::shared_ptr<const ConvertedModel>> models;
    std::shared_ptr<const ConvertedModel>& model = models[{GetParam().name, weights}];
    if (model == nullptr) {
      model = std::make_shared<const ConvertedModel>(support::MakeModel(GetParam().make()),
                                                     ConvertOptions{.weights = weights});
    }
    return model;
  }

  reference::ReferenceModel model_;
  std::vector<int32_t> ids_;
};

}  // namespace cria
