#pragma once

// The models that the tests of this folder share, which tests of ctest make. Only fixture_models.cc
// is told by the build where they are; see support/paths.h.
namespace cria_test {

extern const char* const kDemoModel;
extern const char* const kStandaloneModel;  // With weights packed for this processor.
extern const char* const kVariablesModel;   // Its template has a variable and refuses roles.

}  // namespace cria_test
