#include "c_api/fixture_models.h"

namespace cria_test {

const char* const kDemoModel = CRIA_DEMO_MODEL;
const char* const kStandaloneModel = CRIA_STANDALONE_MODEL;
const char* const kVariablesModel = CRIA_VARIABLES_MODEL;

}  // namespace cria_test
