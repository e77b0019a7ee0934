#pragma once

namespace cria::cli {

// Takes the descriptors of standard streams that the caller has closed. Otherwise, the next file
// that is opened would get them: a model would be read as a message, or answers would be written
// into a session file. Using such a stream is still an error.
void TakeClosedStreams();

}  // namespace cria::cli
