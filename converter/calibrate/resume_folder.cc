#include "converter/calibrate/resume_folder.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "converter/input/tensor_source.h"
#include "converter/input/whole_file.h"
#include "core/format.h"
#include "core/output_file.h"
#include "core/platform.h"

namespace cria {
namespace {

// Raised when the files of a layer become different.
constexpr uint64_t kLayerFormat = 2;
// Activations that are copied at once.
constexpr size_t kRowsPerCopy = 1024;
// So many elements of a part of a tensor are enough to know it again.
constexpr size_t kIdentifyingElements = 1024;

class ByteWriter {
 public:
  void Add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <typename T>
  void AddNumber(T number) {
    Add(std::as_bytes(std::span(&number, 1)));
  }
  // Its length is before it.
  void AddFloats(std::span<const float> values) {
    AddNumber<uint64_t>(values.size());
    Add(std::as_bytes(values));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what ByteWriter wrote; nothing is read past the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool Read(std::span<std::byte> to) {
    if (to.size() > rest_.size()) return false;
    std::ranges::copy(rest_.first(to.size()), to.begin());
    rest_ = rest_.subspan(to.size());
    return true;
  }
  template <typename T>
  bool ReadNumber(T& number) {
    return Read(std::as_writable_bytes(std::span(&number, 1)));
  }
  bool ReadFloats(std::vector<float>& values) {
    uint64_t size = 0;
    if (!ReadNumber(size) || size > rest_.size() / sizeof(float)) return false;
    values.resize(size);
    return Read(std::as_writable_bytes(std::span(values)));
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

Status WriteWhole(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const uint64_t checksum = ChecksumOf(bytes);
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, bytes.size() + sizeof checksum));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, bytes));
  CRIA_RETURN_IF_ERROR(file.WriteAt(bytes.size(), std::as_bytes(std::span(&checksum, 1))));
  return file.Commit();
}

std::unexpected<Error> Damaged(const std::filesystem::path& path) {
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: is damaged; remove its folder to begin again", path.string()));
}

Result<std::vector<std::byte>> ReadWhole(const std::filesystem::path& path, uint64_t max_bytes) {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(path.string()));
  if (file.size_bytes() > max_bytes + sizeof(uint64_t)) return Damaged(path);
  std::vector<std::byte> bytes(file.size_bytes());
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, bytes));
  uint64_t checksum = 0;
  if (bytes.size() < sizeof checksum) return Damaged(path);
  const size_t size = bytes.size() - sizeof checksum;
  std::memcpy(&checksum, bytes.data() + size, sizeof checksum);
  bytes.resize(size);
  if (ChecksumOf(bytes) != checksum) return Damaged(path);
  return bytes;
}

uint64_t CodeBytes(const PlannedTensor& tensor) {
  return tensor.stored.layout.data_bytes() + tensor.stored.layout.scale_bytes();
}

// The file of a layer with these tensors is no longer.
uint64_t MaxLayerBytes(std::span<PlannedTensor* const> tensors) {
  uint64_t bytes = 0;
  for (const PlannedTensor* const tensor : tensors) {
    const TensorLayout& layout = tensor->stored.layout;
    // A part has at most three lists of factors, each for its rows or for its columns.
    const uint64_t list_bytes =
        sizeof(uint64_t) + (layout.output_channels + layout.input_channels) * sizeof(float);
    bytes += sizeof(uint64_t) + sizeof(QuantizationError) + CodeBytes(*tensor) +
             3 * tensor->parts.size() * list_bytes;
  }
  return bytes;
}

bool ReadTensor(ByteReader& reader, PlannedTensor& tensor, std::vector<std::byte>& codes) {
  for (MappedPart& part : tensor.parts) {
    if (!reader.ReadFloats(part.row_factors) || !reader.ReadFloats(part.column_factors) ||
        !reader.ReadFloats(part.rotated_column_factors)) {
      return false;
    }
  }
  uint64_t num_codes = 0;
  codes.clear();
  if (!reader.ReadNumber(num_codes)) return false;
  if (num_codes == 0) return true;
  if (num_codes != CodeBytes(tensor)) return false;
  codes.resize(num_codes);
  tensor.encoded.emplace();
  return reader.ReadNumber(tensor.encoded->error) && reader.Read(codes);
}

}  // namespace

std::filesystem::path ResumeFolder::LayerPath(size_t layer) const {
  return folder_ / Format("layer-{}", layer);
}

std::filesystem::path ResumeFolder::ActivationPath() const { return folder_ / "activations"; }

Result<ResumeFolder> ResumeFolder::Open(const std::filesystem::path& folder, const Digest& of) {
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (!std::filesystem::is_directory(folder, error)) {
    return Fail(ErrorCode::kIo,
                Format("{}: is not a folder and cannot be made one", folder.string()));
  }
  ResumeFolder opened(folder);
  opened.state_.of = of;
  CRIA_ASSIGN_OR_RETURN(const bool has_activations, FileExists(opened.ActivationPath()));
  if (!has_activations) return opened;
  CRIA_ASSIGN_OR_RETURN(const platform::File file,
                        platform::File::Open(opened.ActivationPath().string()));
  State state;
  if (file.size_bytes() < sizeof state) return Damaged(opened.ActivationPath());
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&state, 1))));
  if (std::memcmp(state.magic, opened.state_.magic, sizeof state.magic) != 0) {
    return Damaged(opened.ActivationPath());
  }
  if (state.of != of) {
    return Fail(
        ErrorCode::kUsage,
        Format("{}: is of another checkpoint, other options or another text", folder.string()));
  }
  opened.state_ = state;
  return opened;
}

Status ResumeFolder::ReadLayer(size_t layer, const std::shared_ptr<ScratchFile>& scratch,
                               std::span<PlannedTensor* const> tensors) const {
  CRIA_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                        ReadWhole(LayerPath(layer), MaxLayerBytes(tensors)));
  ByteReader reader(bytes);
  std::vector<std::byte> codes;
  for (PlannedTensor* const tensor : tensors) {
    if (!ReadTensor(reader, *tensor, codes)) return Damaged(LayerPath(layer));
    if (codes.empty()) continue;
    const QuantizationError error = tensor->encoded->error;
    tensor->encoded = ReserveCodes(scratch, tensor->stored.layout);
    tensor->encoded->error = error;
    // The scales are behind the data.
    CRIA_RETURN_IF_ERROR(scratch->WriteAt(tensor->encoded->data_offset, codes));
  }
  return reader.is_at_end() ? Status() : Damaged(LayerPath(layer));
}

Status ResumeFolder::ReadActivations(size_t num_rows, size_t width, ActivationFile& exact,
                                     ActivationFile& stored) const {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(ActivationPath().string()));
  if (file.size_bytes() != sizeof(State) + 2 * num_rows * width * sizeof(float)) {
    return Damaged(ActivationPath());
  }
  uint64_t offset = sizeof(State);
  for (ActivationFile* const activations : {&exact, &stored}) {
    for (size_t row = 0; row < num_rows; row += kRowsPerCopy) {
      Matrix rows(std::min(kRowsPerCopy, num_rows - row), width);
      CRIA_RETURN_IF_ERROR(file.ReadAt(offset, std::as_writable_bytes(rows.values())));
      offset += rows.values().size_bytes();
      CRIA_RETURN_IF_ERROR(activations->Write(row, rows));
    }
  }
  return {};
}

Status ResumeFolder::Keep(std::span<PlannedTensor* const> tensors,
                          const CalibrationProgress& progress, size_t num_rows, size_t width,
                          const ActivationFile& exact, const ActivationFile& stored) {
  ByteWriter writer;
  for (const PlannedTensor* const tensor : tensors) {
    for (const MappedPart& part : tensor->parts) {
      writer.AddFloats(part.row_factors);
      writer.AddFloats(part.column_factors);
      writer.AddFloats(part.rotated_column_factors);
    }
    std::vector<std::byte> codes(tensor->encoded ? CodeBytes(*tensor) : 0);
    writer.AddNumber<uint64_t>(codes.size());
    if (!tensor->encoded) continue;
    CRIA_RETURN_IF_ERROR(tensor->encoded->file->ReadAt(tensor->encoded->data_offset, codes));
    writer.AddNumber(tensor->encoded->error);
    writer.Add(codes);
  }
  CRIA_RETURN_IF_ERROR(WriteWhole(LayerPath(num_layers()), writer.bytes()));

  State state = state_;
  ++state.num_layers;
  state.progress = progress;
  const uint64_t bytes = sizeof state + 2 * num_rows * width * sizeof(float);
  CRIA_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(ActivationPath(), bytes));
  CRIA_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(&state, 1))));
  uint64_t offset = sizeof state;
  for (const ActivationFile* const activations : {&exact, &stored}) {
    for (size_t row = 0; row < num_rows; row += kRowsPerCopy) {
      CRIA_ASSIGN_OR_RETURN(const Matrix rows,
                            activations->Read(row, std::min(kRowsPerCopy, num_rows - row), width));
      CRIA_RETURN_IF_ERROR(file.WriteAt(offset, std::as_bytes(rows.values())));
      offset += rows.values().size_bytes();
    }
  }
  CRIA_RETURN_IF_ERROR(file.Commit());
  state_ = state;
  return {};
}

void ResumeFolder::Remove() {
  std::error_code ignored;
  // First what says that there is something to go on with.
  std::filesystem::remove(ActivationPath(), ignored);
  for (size_t layer = 0; layer < num_layers(); ++layer) {
    std::filesystem::remove(LayerPath(layer), ignored);
  }
}

Result<Digest> CalibrationIdentity(const FilePlan& plan, std::span<const int32_t> tokens,
                                   size_t window_tokens) {
  ByteWriter identity;
  identity.AddNumber(kLayerFormat);
  identity.AddNumber<uint64_t>(window_tokens);
  identity.Add(std::as_bytes(tokens));
  TensorReader reader;
  for (const PlannedTensor& tensor : plan.tensors) {
    const TensorLayout& layout = tensor.stored.layout;
    for (const uint64_t number :
         {uint64_t{std::to_underlying(layout.scheme)}, uint64_t{layout.block_size},
          uint64_t{layout.output_channels}, uint64_t{layout.input_channels}}) {
      identity.AddNumber(number);
    }
    for (const MappedPart& part : tensor.parts) {
      std::vector<float> values(
          std::min<uint64_t>(kIdentifyingElements, part.source->num_elements()));
      CRIA_RETURN_IF_ERROR(reader.Read(*part.source, 0, values));
      identity.AddFloats(values);
      identity.AddFloats(part.row_factors);
      identity.AddFloats(part.column_factors);
      identity.AddNumber(uint8_t{part.is_rotated});
    }
  }
  return Digest128(identity.bytes());
}

}  // namespace cria
