#include "decode/load_weights.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/format.h"

namespace cria {
namespace {

// Fails if the tensor, whose pieces these are, does not have the shape that the decoder computes
// with. Only the layer that guesses tokens may be left out.
Result<std::vector<TensorPlace>> PlacesOf(const ModelFile& file, const TensorPlaces& all,
                                          const TensorSpec& spec,
                                          std::span<const StoredTensor> pieces) {
  std::vector<TensorPlace> places = all.Find(spec.role, spec.layer);
  const TensorLayout& layout = pieces.front().layout;
  const size_t outputs = pieces.back().first_row + pieces.back().layout.output_channels;
  const bool fits = std::ranges::all_of(places, [&](const TensorPlace& place) {
    return outputs == place.outputs && layout.input_channels == place.inputs &&
           (spec.is_vector() || layout.is_plain ? place.vector != nullptr
                                                : place.product != nullptr);
  });
  if (fits && (!places.empty() || spec.is_of_mtp)) return places;
  return Fail(ErrorCode::kInternal,
              Format("{}: the decoder has no place for {} of [{}, {}]", file.path(), spec.Name(),
                     outputs, layout.input_channels));
}

// Creates the operators of matrices. Most layers have the same shapes, so the operators of one
// layer serve others.
class LinearMaker {
 public:
  LinearMaker(const ModelFile& file, size_t num_threads, std::deque<xnn::Linear>& linears)
      : file_(file), num_threads_(num_threads), linears_(linears) {}

  Result<xnn::Linear*> LinearFor(const TensorSpec& spec, const StoredTensor& piece,
                                 const TensorPlace& place) {
    const TensorLayout& layout = piece.layout;
    const auto alike = std::ranges::find_if(known_, [&](const Known& other) {
      return other.role == spec.role && other.first_row == piece.first_row &&
             other.layout == layout && other.output == place.output;
    });
    if (alike != known_.end()) return alike->linear;
    Result<xnn::Linear> linear =
        xnn::Linear::Create(layout.Part(),
                            {.input = place.input,
                             .input_stride = place.input_stride,
                             .quantized = place.quantized,
                             .quantized_stride = QuantizedRowStride(layout.input_channels),
                             .output = place.output + piece.first_row,
                             .output_stride = place.outputs / layout.num_parts},
                            num_threads_);
    if (!linear) {
      return Fail(linear.error().code(),
                  Format("{}: {}: {}", file_.path(), spec.Name(), linear.error().message()));
    }
    linears_.push_back(std::move(*linear));
    known_.push_back({spec.role, piece.first_row, layout, place.output, &linears_.back()});
    return known_.back().linear;
  }

 private:
  struct Known {
    TensorRole role;
    size_t first_row;
    TensorLayout layout;
    const float* output;
    xnn::Linear* linear;
  };

  const ModelFile& file_;
  const size_t num_threads_;
  std::deque<xnn::Linear>& linears_;
  std::vector<Known> known_;
};

}  // namespace

Status LoadVectors(const ModelFile& file, const TensorPlaces& places, float* memory) {
  for (const StoredTensor& tensor : file.tensors()) {
    if (!tensor.spec.is_vector()) continue;
    CRIA_ASSIGN_OR_RETURN(const std::vector<TensorPlace> own,
                          PlacesOf(file, places, tensor.spec, {&tensor, 1}));
    if (own.empty()) continue;
    const size_t size = own.front().inputs;
    const std::span<float> vector(std::exchange(memory, memory + size), size);
    const std::span<std::byte> bytes = std::as_writable_bytes(vector);
    CRIA_RETURN_IF_ERROR(tensor.part == nullptr ? file.Read(tensor.data, bytes)
                                                : tensor.part->Read(file, 0, 1, bytes, {}));
    for (const TensorPlace& place : own) *place.vector = vector.data();
  }
  return {};
}

Result<uint64_t> LoadMatrices(const ModelFile& file, const TensorPlaces& places,
                              const xnn::PackedWeights& weights, size_t num_threads,
                              std::deque<xnn::Linear>& linears) {
  const ModelConfig& config = file.config();
  LinearMaker maker(file, num_threads, linears);
  uint64_t bytes_per_token = 0;
  size_t num_matrices = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (!spec.is_multiplied()) continue;
    // For a tied head, this is the embedding table.
    const std::span<const StoredTensor> pieces = file.pieces(spec.role, spec.layer);
    CRIA_ASSIGN_OR_RETURN(const std::vector<TensorPlace> own, PlacesOf(file, places, spec, pieces));
    for (const StoredTensor& piece : pieces) {
      const TensorLayout& layout = piece.layout;
      const uint64_t used_parts = layout.num_parts == 1 ? 1 : config.num_experts_per_tok;
      if (!spec.is_of_mtp) {
        bytes_per_token +=
            (layout.data_bytes() + layout.scale_bytes()) / layout.num_parts * used_parts;
      }
      // Packed weights are in the order of a forward pass, like ExpectedTensors.
      const std::span<const std::byte> packed = weights.matrices()[num_matrices++];
      for (const TensorPlace& place : own) {
        if (layout.is_plain) {
          *place.vector = reinterpret_cast<const float*>(packed.data());
          continue;
        }
        CRIA_ASSIGN_OR_RETURN(xnn::Linear* const linear, maker.LinearFor(spec, piece, place));
        place.product->AddPiece(*linear, packed);
      }
    }
  }
  return bytes_per_token;
}

}  // namespace cria
