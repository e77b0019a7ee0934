#pragma once

#include "cria/error.h"
#include "model/model_file.h"

namespace cria::schema {
struct Model;
}

namespace cria {

// Fills a ModelFile from its mapped metadata and checks every field. Errors name the field but not
// the file.
class ModelFileReader {
 public:
  explicit ModelFileReader(ModelFile& model) : model_(model) {}
  Status Read();

 private:
  Status CheckFeatures(const schema::Model& metadata);
  Status ReadConfig(const schema::Model& metadata);
  Status ReadVocabulary(const schema::Model& metadata);
  Status ReadChatTemplate(const schema::Model& metadata);
  Status ReadPooling(const schema::Model& metadata);
  Status ReadReranking(const schema::Model& metadata);
  Status CheckNoTensors(const schema::Model& metadata) const;
  Status ReadSections(const schema::Model& metadata);
  Status ReadTensors(const schema::Model& metadata);
  // Reads the entries of one tensor, from entry `next` of the table on: one for each piece.
  Status ReadPieces(const schema::Model& metadata, const TensorSpec& spec, size_t& next);
  Status CheckLayout(const StoredTensor& tensor) const;
  Status CheckRange(FileRange range, const StoredTensor& tensor) const;
  Status CheckPackedOffset() const;
  Status CheckNoOverlap() const;

  ModelFile& model_;
  std::vector<FileRange> sections_;
};

}  // namespace cria
