#pragma once

#include <map>
#include <string>

#include "reference/reference_model.h"
#include "support/gguf_writer.h"

namespace cria::support {

// Writes the experts of gpt-oss as llama.cpp's converter does: gates and up apart, matrices as
// [experts, outputs, inputs], and those in MXFP4 as blocks of GGML.
class GptOssGguf {
 public:
  // Takes a tensor that Hugging Face's files have behind "model.layers.N.mlp.experts."; `block` is
  // "blk.N.". Blocks of MXFP4 are written when their scales have come, too.
  void Add(const std::string& name, const std::string& block, reference::ReferenceTensor tensor,
           GgufWriter& writer);

 private:
  std::map<std::string, reference::ReferenceTensor> parts_;  // MXFP4's, by the whole name.
};

}  // namespace cria::support
