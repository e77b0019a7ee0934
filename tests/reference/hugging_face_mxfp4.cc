#include "reference/hugging_face_mxfp4.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace cria::reference {
namespace {

// E2M1: a sign, two bits of an exponent, a bit of a mantissa.
float Fp4(int code) {
  const int exponent = code >> 1 & 3;
  const float mantissa = 0.5f * static_cast<float>(code & 1);
  const float magnitude = exponent == 0 ? mantissa : std::ldexp(1.0f + mantissa, exponent - 1);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

ReferenceTensor Matrices(const ReferenceTensor& blocks, const ReferenceTensor& scales) {
  const size_t experts = blocks.shape.at(0);
  const size_t outputs = blocks.shape.at(1);
  const size_t inputs = 32 * blocks.shape.at(2);
  ReferenceTensor matrices = {.shape = {experts, inputs, outputs},
                              .values = std::vector<float>(experts * inputs * outputs)};
  for (size_t row = 0; row < experts * outputs; ++row) {
    for (size_t input = 0; input < inputs; ++input) {
      const size_t at = row * inputs + input;
      const int byte = static_cast<int>(blocks.values.at(at / 2));
      const int exponent = static_cast<int>(scales.values.at(at / 32)) - 127;
      const float value = std::ldexp(Fp4(input % 2 == 0 ? byte % 16 : byte / 16), exponent);
      matrices.values[(row / outputs * inputs + input) * outputs + row % outputs] = value;
    }
  }
  return matrices;
}

}  // namespace

void DequantizeMxfp4(ReferenceModel& model) {
  const std::string suffix = "_blocks";
  std::vector<std::string> stems;
  for (const auto& [name, tensor] : model.tensors) {
    if (name.ends_with(suffix)) stems.push_back(name.substr(0, name.size() - suffix.size()));
  }
  for (const std::string& stem : stems) {
    ReferenceTensor matrices =
        Matrices(model.tensors.at(stem + suffix), model.tensors.at(stem + "_scales"));
    model.tensors.erase(stem + suffix);
    model.tensors.erase(stem + "_scales");
    model.tensors.emplace(stem, std::move(matrices));
  }
}

}  // namespace cria::reference
