#include "support/paths.h"

namespace cria::support {

const char* const kCriaProgram = CRIA_PROGRAM;
const char* const kConvertProgram = CRIA_CONVERT_PROGRAM;
const char* const kServeProgram = CRIA_SERVE_PROGRAM;
const char* const kMpiProgram = CRIA_MPI_PROGRAM;
const char* const kModelConverter = CRIA_MODEL_CONVERTER;
const char* const kMakeCheckpointProgram = CRIA_MAKE_CHECKPOINT_PROGRAM;
const char* const kTerminalPictureProgram = CRIA_TERMINAL_PICTURE_PROGRAM;
const char* const kSentencepieceOracle = CRIA_SENTENCEPIECE_ORACLE;
const char* const kDemoCheckpoint = CRIA_SOURCE_FOLDER "/demo/cria-demo";

std::string SourcePath(const char* path) { return std::string(CRIA_SOURCE_FOLDER "/") + path; }

}  // namespace cria::support
