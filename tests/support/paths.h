#pragma once

#include <string>

// Where programs and files of the tree are. Only paths.cc, which is small, is told so by the build:
// what is compiled of all other tests does not depend on the place of the tree, so that another
// clone finds it in the compiler's cache.
namespace cria::support {

// The programs under test.
extern const char* const kCriaProgram;
extern const char* const kConvertProgram;
extern const char* const kServeProgram;
extern const char* const kMpiProgram;  // Empty if the build has none.

// The programs that make models for tests of something else; under emulation, those of the host.
extern const char* const kModelConverter;
extern const char* const kMakeCheckpointProgram;

extern const char* const kTerminalPictureProgram;
extern const char* const kSentencepieceOracle;

extern const char* const kDemoCheckpoint;

// The path of a file of the tree, such as "docs/models.md".
std::string SourcePath(const char* path);

}  // namespace cria::support
